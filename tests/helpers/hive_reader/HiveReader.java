// Reads partitions as Hive does, by the input format and the columns of an entry in a metastore:
// a line of JSON asks, a line of JSON answers.
//
//   java -cp CLASSES HiveReader.java

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.io.ArrayWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

public class HiveReader {
  private static final PrintStream ANSWERS = System.out;
  private static final ObjectMapper JSON = new ObjectMapper();

  static {
    System.setOut(System.err); // what libraries print is no answer
  }

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        answer.set("rows", JSON.valueToTree(read(JSON.readTree(line))));
      } catch (Throwable failure) {
        StringWriter trace = new StringWriter();
        failure.printStackTrace(new PrintWriter(trace));
        answer.put("error", trace.toString());
      }
      ANSWERS.println(JSON.writeValueAsString(answer));
      ANSWERS.flush();
    }
    System.exit(0);
  }

  /** Rows of a partition, each a list of values in the order of the columns. */
  private static List<Object> read(JsonNode request) throws Exception {
    JobConf job = new JobConf();
    Properties properties = new Properties();
    for (Map.Entry<String, String> one : settings(request).entrySet()) {
      job.set(one.getKey(), one.getValue());
      properties.setProperty(one.getKey(), one.getValue());
    }
    FileInputFormat.setInputPaths(job, new Path(request.get("partition").asText()));
    InputFormat<NullWritable, ArrayWritable> format = (InputFormat<NullWritable, ArrayWritable>)
        Class.forName(request.get("format").asText()).getConstructor().newInstance();
    if (format instanceof org.apache.hadoop.conf.Configurable) {
      ((org.apache.hadoop.conf.Configurable) format).setConf(job);
    }
    ParquetHiveSerDe serde = new ParquetHiveSerDe();
    serde.initialize(job, properties);
    List<Object> rows = new ArrayList<>();
    for (InputSplit split : format.getSplits(job, 1)) {
      try (Rows reader = new Rows(format.getRecordReader(split, job, Reporter.NULL))) {
        while (reader.next()) {
          List<?> row = (List<?>) ObjectInspectorUtils.copyToStandardJavaObject(
              serde.deserialize(reader.value), serde.getObjectInspector());
          rows.add(plain(row.subList(0, request.get("columns").size())));
        }
      }
    }
    return rows;
  }

  /** What Hive sets for a query of all columns. */
  private static Map<String, String> settings(JsonNode request) {
    List<String> names = new ArrayList<>();
    List<String> types = new ArrayList<>();
    for (JsonNode column : request.get("columns")) {
      names.add(column.get(0).asText());
      types.add(column.get(1).asText());
    }
    Map<String, String> found = new LinkedHashMap<>();
    found.put("columns", String.join(",", names));
    found.put("columns.types", String.join(":", types));
    found.put("hive.io.file.read.all.columns", "false");
    found.put("hive.io.file.readcolumn.names", String.join(",", names));
    found.put("hive.io.file.readcolumn.ids",
        IntStream.range(0, names.size()).mapToObj(String::valueOf).collect(Collectors.joining(",")));
    if (request.hasNonNull("partition_columns")) {
      found.put("partition_columns", request.get("partition_columns").asText());
      found.put("partition_columns.types", request.get("partition_types").asText());
    }
    return found;
  }

  private static Object plain(Object value) {
    if (value instanceof List) {
      return ((List<?>) value).stream().map(HiveReader::plain).collect(Collectors.toList());
    }
    if (value instanceof Map) {
      Map<String, Object> found = new LinkedHashMap<>();
      ((Map<?, ?>) value).forEach((key, one) -> found.put(String.valueOf(key), plain(one)));
      return found;
    }
    if (value instanceof byte[]) {
      StringBuilder hex = new StringBuilder();
      for (byte one : (byte[]) value) {
        hex.append(String.format("%02x", one));
      }
      return hex.toString();
    }
    return value == null || value instanceof Number && !(value instanceof java.math.BigDecimal) || value instanceof Boolean
        ? value : value.toString();
  }

  private static final class Rows implements AutoCloseable {
    private final RecordReader<NullWritable, ArrayWritable> reader;
    private final NullWritable key;
    private final ArrayWritable value;

    Rows(RecordReader<NullWritable, ArrayWritable> reader) {
      this.reader = reader;
      key = reader.createKey();
      value = reader.createValue();
    }

    boolean next() throws java.io.IOException {
      return reader.next(key, value);
    }

    @Override
    public void close() throws java.io.IOException {
      reader.close();
    }
  }
}
