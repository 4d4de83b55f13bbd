import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.scheduling.annotation.Scheduled;

class Nightly {
    @Scheduled(cron = "0 0 3 * * *")
    @SchedulerLock(name = "nightly", lockAtMostFor = "30m")
    public void run() {
        System.out.println("nightly");
    }
}
