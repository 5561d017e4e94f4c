// A file system of Hadoop's in one process: a name node, a data node, and a root folder for everybody.
//
// Takes commands by lines, and ends with its input, so with the tests, however they end.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class MiniHdfs {
  // The folder that it keeps all in.
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    // Files of the tests have blocks of more than one, and folders pages.
    settings.setLong("dfs.namenode.fs-limits.min-block-size", 1 << 20);
    settings.setLong("dfs.blocksize", 4 << 20);
    settings.setInt("dfs.ls.limit", 5);
    settings.setInt("dfs.replication", 1);
    settings.setInt("dfs.heartbeat.interval", 1);
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build();
    cluster.waitClusterUp();
    cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
    System.out.println("listens on hdfs://127.0.0.1:" + cluster.getNameNodePort());
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    String command;
    while ((command = commands.readLine()) != null) {
      String[] words = command.split(" ");
      if (words[0].equals("stop")) {
        cluster.shutdownNameNode(0);
      } else if (words[0].equals("start")) {
        cluster.restartNameNode(0, true);
      } else if (words[0].equals("mode")) {
        cluster.getFileSystem().setPermission(new Path(words[2]), new FsPermission(words[1]));
      }
      System.out.println("did " + command);
    }
    System.exit(0);
  }
}
