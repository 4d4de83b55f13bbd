/** The operation surely had no effect; the text is a word of the protocol or a reason. */
final class Refused extends Exception {
    Refused(String why) {
        super(why);
    }
}
