// Writes to tables with Hudi's Java client: a line of JSON asks, a line of JSON ANSWERS.
//
//   java -cp CLASSES JavaClient.java
//
// Options, schema and rows come with each request: nothing is kept from one to the next.

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
import java.util.List;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.engine.EngineType;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecordPayload;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.HoodieRecordUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.keygen.BaseKeyGenerator;
import org.apache.hudi.keygen.factory.HoodieAvroKeyGeneratorFactory;

public class JavaClient {
  private static final PrintStream ANSWERS = System.out;

  static {
    System.setOut(System.err); // what Hudi prints is no answer
  }

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HoodieJavaEngineContext CONTEXT =
      new HoodieJavaEngineContext(HadoopFSUtils.getStorageConf(new Configuration()));

  private final JsonNode request;
  private final TypedProperties options = new TypedProperties();
  private final HoodieTableMetaClient meta;
  private final Schema schema;

  private JavaClient(JsonNode request) throws Exception {
    this.request = request;
    request.get("options").fields().forEachRemaining(one -> options.setProperty(one.getKey(), one.getValue().asText()));
    String base = request.get("base").asText();
    if (request.get("do").asText().equals("create")) {
      HoodieTableMetaClient.newTableBuilder().fromProperties(options).initTable(CONTEXT.getStorageConf(), base);
    }
    meta = HoodieTableMetaClient.builder().setConf(CONTEXT.getStorageConf()).setBasePath(base).build();
    schema = new Schema.Parser().parse(request.get("schema").asText());
  }

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        answer.put("instant", new JavaClient(JSON.readTree(line)).run());
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

  /** The instant of the step; null where there was nothing to do. */
  private String run() throws Exception {
    if (request.get("do").asText().equals("create")) {
      return null;
    }
    HoodieWriteConfig config = HoodieWriteConfig.newBuilder().withEngineType(EngineType.JAVA)
        .withPath(request.get("base").asText()).withSchema(schema.toString())
        .forTable(meta.getTableConfig().getTableName()).withEmbeddedTimelineServerEnabled(false)
        .withProps(options).build();
    try (HoodieJavaWriteClient client = new HoodieJavaWriteClient(CONTEXT, config)) {
      switch (request.get("do").asText()) {
        case "insert": {
          String instant = client.startCommit();
          return commit(client, instant, (List<WriteStatus>) client.insert(records(), instant));
        }
        case "upsert": {
          String instant = client.startCommit();
          return commit(client, instant, (List<WriteStatus>) client.upsert(records(), instant));
        }
        case "delete": {
          String instant = client.startCommit();
          List<HoodieKey> keys = records().stream().map(HoodieRecord::getKey).collect(Collectors.toList());
          return commit(client, instant, (List<WriteStatus>) client.delete(keys, instant));
        }
        case "compact": {
          Option<String> instant = client.scheduleCompaction(Option.empty());
          if (instant.isPresent()) {
            client.compact(instant.get(), true);
          }
          return instant.orElse(null);
        }
        case "run_compaction": // one that is planned
          client.compact(request.get("instant").asText(), true);
          return request.get("instant").asText();
        case "cluster": {
          Option<String> instant = client.scheduleClustering(Option.empty());
          if (instant.isPresent()) {
            client.cluster(instant.get(), true);
          }
          return instant.orElse(null);
        }
        case "clean": {
          Object done = client.clean();
          return done == null ? null : ((org.apache.hudi.avro.model.HoodieCleanMetadata) done).getStartCleanTime();
        }
        default: throw new IllegalArgumentException(request.toString());
      }
    }
  }

  private static String commit(HoodieJavaWriteClient client, String instant, List<WriteStatus> statuses) {
    for (WriteStatus status : statuses) {
      if (status.hasErrors()) {
        throw new IllegalStateException(status + " " + status.getErrors());
      }
    }
    client.commit(instant, statuses);
    return instant;
  }

  private List<HoodieRecord> records() throws Exception {
    BaseKeyGenerator keys = (BaseKeyGenerator) HoodieAvroKeyGeneratorFactory.createKeyGenerator(options);
    String payload = options.getProperty("hoodie.datasource.write.payload.class");
    String ordering = meta.getTableConfig().getOrderingFields().get(0);
    List<HoodieRecord> found = new ArrayList<>();
    for (JsonNode row : request.get("rows")) {
      GenericRecord record = (GenericRecord) value(row, schema);
      HoodieRecordPayload data = HoodieRecordUtils.loadPayload(payload, record, (Comparable) record.get(ordering));
      found.add(new HoodieAvroRecord(keys.getKey(record), data));
    }
    return found;
  }

  private static Object value(JsonNode node, Schema type) {
    switch (type.getType()) {
      case UNION:
        return node == null || node.isNull() ? null : value(node, type.getTypes().get(1));
      case RECORD:
        GenericRecord record = new GenericData.Record(type);
        for (Schema.Field field : type.getFields()) {
          record.put(field.name(), value(node.get(field.name()), field.schema()));
        }
        return record;
      case ARRAY:
        List<Object> items = new ArrayList<>();
        node.forEach(item -> items.add(value(item, type.getElementType())));
        return items;
      case INT: return node.intValue();
      case LONG: return node.longValue();
      case DOUBLE: return node.doubleValue();
      case BOOLEAN: return node.booleanValue();
      default: return node.asText();
    }
  }
}
