// Java's KafkaConsumer: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER PATTERN.

import java.io.FileReader;
import java.time.Duration;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.StringDeserializer;

public class JavaReader {
  public static void main(String[] arguments) throws Exception {
    var settings = new Properties();
    settings.load(new FileReader(arguments[0] + "/client.properties"));
    var text = new StringDeserializer();
    try (var consumer = new KafkaConsumer<>(settings, text, text)) {
      consumer.subscribe(Pattern.compile(arguments[1]));
      while (true) {
        try {
          for (var found : consumer.poll(Duration.ofMillis(500))) show(found);
        } catch (TopicAuthorizationException error) {
          System.out.println("error\t" + error.getMessage());
          Thread.sleep(1000);
        }
      }
    }
  }

  private static void show(ConsumerRecord<String, String> found) {
    if (found.headers().lastHeader("fence") == null) {
      System.out.println("record\t" + found.topic() + "\t" + found.value());
    }
  }
}
