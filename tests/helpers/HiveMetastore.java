// A Hive metastore that makes the tables of its locks first: the jars have no scripts for that.

import java.io.File;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

public class HiveMetastore {
  public static void main(String[] arguments) throws Throwable {
    if (!new File("db").exists()) {
      TxnDbUtil.prepDb(new HiveConf());
    }
    HiveMetaStore.main(arguments);
  }
}
