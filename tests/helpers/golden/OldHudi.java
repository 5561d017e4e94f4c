// Writes a table by a list of steps with the Java client of an old Apache Hudi release, whose Spark
// bundle is not to be had. Records are tagged here, so that merge-on-read tables get log files.
//
//   java -cp JARS OldHudi.java TABLE STEPS.jsonl

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecordLocation;
import org.apache.hudi.common.model.HoodieRecordPayload;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.ParquetUtils;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.keygen.BaseKeyGenerator;
import org.apache.hudi.table.HoodieJavaTable;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.HoodieWriteMetadata;

public class OldHudi {
  private final String base;
  private final Configuration conf = new Configuration();
  private final HoodieJavaEngineContext context = new HoodieJavaEngineContext(conf);
  private final Properties options = new Properties();
  private Schema schema;
  private HoodieJavaWriteClient client;
  private String pendingCompaction;

  OldHudi(String base) {
    this.base = base;
  }

  public static void main(String[] args) throws Exception {
    OldHudi table = new OldHudi(args[0]);
    ObjectMapper json = new ObjectMapper();
    for (String line : Files.readAllLines(Paths.get(args[1]))) {
      JsonNode step = json.readTree(line);
      System.out.println("step " + step.get("do").asText());
      table.run(step);
    }
    table.client.close();
    System.exit(0);
  }

  private void run(JsonNode step) throws Exception {
    switch (step.get("do").asText()) {
      case "create": create(step); break;
      case "schema": schema = new Schema.Parser().parse(step.get("schema").asText()); open(); break;
      case "set": set(step.get("options")); open(); break;
      case "write": write(step); break;
      case "overwrite": overwrite(step); break;
      case "rollback": client.rollback(last()); break;
      case "savepoint": client.savepoint(last(), "golden", "keep"); break;
      case "restore": client.restoreToSavepoint(step.get("instant").asText()); break;
      case "restore_last": client.restoreToSavepoint(savepoint()); break;
      case "clean": client.clean(); break;
      case "schedule_compaction": pendingCompaction = (String) client.scheduleCompaction(Option.empty()).get(); break;
      case "compact": compact(); break;
      case "schedule_clustering": client.scheduleClustering(Option.empty()).get(); break;
      case "cluster": cluster(); break;
      default: throw new IllegalArgumentException(step.toString());
    }
  }

  private void set(JsonNode given) {
    for (Iterator<Map.Entry<String, JsonNode>> all = given.fields(); all.hasNext(); ) {
      Map.Entry<String, JsonNode> one = all.next();
      options.setProperty(one.getKey(), one.getValue().asText());
    }
  }

  private void create(JsonNode step) throws Exception {
    set(step.get("options"));
    schema = new Schema.Parser().parse(step.get("schema").asText());
    HoodieTableMetaClient.withPropertyBuilder().fromProperties(options).setTableType(step.get("type").asText())
        .setTableName(options.getProperty("hoodie.table.name"))
        .setRecordKeyFields(options.getProperty("hoodie.datasource.write.recordkey.field"))
        .setPartitionFields(options.getProperty("hoodie.datasource.write.partitionpath.field"))
        .setPreCombineField(options.getProperty("hoodie.datasource.write.precombine.field"))
        .setPayloadClassName(options.getProperty("hoodie.datasource.write.payload.class"))
        .setKeyGeneratorClassProp(options.getProperty("hoodie.datasource.write.keygenerator.class"))
        .setHiveStylePartitioningEnable(Boolean.valueOf(options.getProperty("hoodie.datasource.write.hive_style_partitioning", "false")))
        .initTable(conf, base);
    open();
  }

  private void open() {
    if (client != null) {
      client.close();
    }
    client = new HoodieJavaWriteClient<>(context, config());
  }

  private HoodieWriteConfig config() {
    return HoodieWriteConfig.newBuilder().withPath(base).withSchema(schema.toString()).withProps(options)
        .forTable(options.getProperty("hoodie.table.name")).build();
  }

  private HoodieTableMetaClient meta() {
    return HoodieTableMetaClient.builder().setConf(conf).setBasePath(base).build();
  }

  private String last() {
    return meta().getActiveTimeline().getCommitsTimeline().filterCompletedInstants().lastInstant().get().getTimestamp();
  }

  private String savepoint() {
    return meta().getActiveTimeline().getSavePointTimeline().filterCompletedInstants().lastInstant().get().getTimestamp();
  }

  private void write(JsonNode step) throws Exception {
    String instant = client.startCommit();
    List<HoodieRecord> records = records(step.get("rows"), step.path("delete").asBoolean());
    tag(records);
    List<WriteStatus> done = step.path("insert").asBoolean()
        ? (List<WriteStatus>) client.insert(records, instant)
        : (List<WriteStatus>) client.upsertPreppedRecords(records, instant);
    check(done);
    // a write without inserts leaves that out in these releases
    if (!meta().getActiveTimeline().filterInflights().containsInstant(instant)) {
      client.transitionInflight(instant);
    }
    if (!step.path("die").asBoolean()) {
      client.commit(instant, done);
    }
  }

  private void overwrite(JsonNode step) throws Exception {
    String instant = org.apache.hudi.common.table.timeline.HoodieActiveTimeline.createNewInstantTime();
    client.startCommitWithTime(instant, "replacecommit");
    HoodieTable table = HoodieJavaTable.create(config(), context);
    HoodieWriteMetadata<List<WriteStatus>> done = (HoodieWriteMetadata<List<WriteStatus>>)
        table.insertOverwrite(context, instant, records(step.get("rows"), false));
    check(done.getWriteStatuses());
    client.commit(instant, done.getWriteStatuses(), Option.empty(), "replacecommit", done.getPartitionToReplaceFileIds());
  }

  // Before 0.14 the client refuses compaction, and always clustering; what it is made of can do both.
  private void compact() {
    try {
      HoodieWriteMetadata done = client.compact(pendingCompaction);
      client.commitCompaction(pendingCompaction, (org.apache.hudi.common.model.HoodieCommitMetadata) done.getCommitMetadata().get(), Option.empty());
      return;
    } catch (org.apache.hudi.exception.HoodieNotSupportedException unsupported) {
      System.out.println(unsupported.getMessage());
    }
    HoodieTable table = HoodieJavaTable.create(config(), context);
    HoodieWriteMetadata done = table.compact(context, pendingCompaction);
    org.apache.hudi.table.action.compact.CompactHelpers.getInstance().completeInflightCompaction(
        HoodieJavaTable.create(config(), context), pendingCompaction,
        (org.apache.hudi.common.model.HoodieCommitMetadata) done.getCommitMetadata().get());
  }

  private void cluster() {
    String instant = (String) client.scheduleClustering(Option.empty()).get();
    HoodieTable table = HoodieJavaTable.create(config(), context);
    HoodieWriteMetadata<List<WriteStatus>> done = (HoodieWriteMetadata<List<WriteStatus>>) table.cluster(context, instant);
    check(done.getWriteStatuses());
    client.setOperationType(org.apache.hudi.common.model.WriteOperationType.CLUSTER);
    client.commit(instant, done.getWriteStatuses(), Option.empty(), "replacecommit", done.getPartitionToReplaceFileIds());
  }

  private static void check(List<WriteStatus> statuses) {
    for (WriteStatus status : statuses) {
      if (status.hasErrors()) {
        throw new IllegalStateException(status.toString() + status.getErrors());
      }
    }
  }

  private List<HoodieRecord> records(JsonNode rows, boolean delete) throws Exception {
    TypedProperties settings = new TypedProperties();
    options.forEach((key, value) -> settings.setProperty((String) key, (String) value));
    BaseKeyGenerator keys = (BaseKeyGenerator) Class.forName(options.getProperty("hoodie.datasource.write.keygenerator.class")
        .replace("KeyGenerator", "AvroKeyGenerator")).getConstructor(TypedProperties.class).newInstance(settings);
    String ordering = options.getProperty("hoodie.datasource.write.precombine.field");
    Class<?> payload = Class.forName(options.getProperty("hoodie.datasource.write.payload.class"));
    List<HoodieRecord> found = new ArrayList<>();
    for (JsonNode row : rows) {
      GenericRecord record = (GenericRecord) value(row, schema);
      HoodieKey key = keys.getKey(record);
      HoodieRecordPayload data = delete ? new EmptyHoodieRecordPayload()
          : (HoodieRecordPayload) payload.getConstructor(GenericRecord.class, Comparable.class)
              .newInstance(record, (Comparable) record.get(ordering));
      found.add(new HoodieAvroRecord(key, data));
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

  // The newest base file of each partition that holds the key.
  private void tag(List<HoodieRecord> records) throws Exception {
    Map<String, Map<String, HoodieRecordLocation>> places = new HashMap<>();
    for (HoodieRecord record : records) {
      String partition = record.getPartitionPath();
      if (!places.containsKey(partition)) {
        places.put(partition, places(partition));
      }
      HoodieRecordLocation place = places.get(partition).get(record.getRecordKey());
      if (place != null) {
        record.unseal();
        record.setCurrentLocation(place);
        record.seal();
      }
    }
  }

  private Map<String, HoodieRecordLocation> places(String partition) throws Exception {
    File[] files = new File(base, partition).listFiles((folder, name) -> name.endsWith(".parquet") && !name.startsWith("."));
    Map<String, HoodieRecordLocation> found = new HashMap<>();
    if (files == null) {
      return found;
    }
    HoodieTable table = HoodieJavaTable.create(config(), context);
    List<String> live = new ArrayList<>();
    table.getBaseFileOnlyView().getLatestBaseFiles(partition).forEach(f -> live.add(((org.apache.hudi.common.model.HoodieBaseFile) f).getFileName()));
    for (File file : files) {
      if (live.contains(file.getName())) {
        HoodieRecordLocation place = new HoodieRecordLocation(FSUtils.getCommitTime(file.getName()), FSUtils.getFileId(file.getName()));
        for (Object key : new ParquetUtils().readRowKeys(conf, new Path(file.toString()))) {
          found.put((String) key, place);
        }
      }
    }
    return found;
  }
}
