import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.scheduling.annotation.Scheduled;

class Nightly {
    @Scheduled(cron = "0 0 3 * * *")
    @SchedulerLock(name = "nightly", lockAtMostFor = "30")  // expect: A-LEASE-3 lease
    public void run() {
        System.out.println("nightly");
    }
}
