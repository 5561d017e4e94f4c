package org.apache.hudi.aws.transaction.lock;

import com.amazonaws.AmazonServiceException;
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.s3.AmazonS3;
import com.amazonaws.services.s3.AmazonS3ClientBuilder;
import com.amazonaws.services.s3.model.ObjectMetadata;
import com.amazonaws.services.s3.model.PutObjectRequest;
import com.amazonaws.services.s3.model.S3Object;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * The bytes of Hudi's storage lock in a bucket of the tests' S3 server. The class of this name that
 * Hudi has is in its bundle for AWS, which not every mirror of Maven's artifacts holds; the lock
 * provider, which decides everything, is Hudi's own.
 */
public class S3StorageLockClient implements StorageLockClient {
  private final AmazonS3 s3;
  private final String bucket;
  private final String key;

  /** Called by Hudi. Credentials and endpoint come from the environment. */
  public S3StorageLockClient(String owner, String lockFile, Properties properties) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(lockFile);
    bucket = place.getLeft();
    key = place.getRight();
    String endpoint = System.getenv("AWS_ENDPOINT_URL");
    s3 =
        AmazonS3ClientBuilder.standard()
            .withEndpointConfiguration(
                new EndpointConfiguration(endpoint, System.getenv("AWS_REGION")))
            .withPathStyleAccessEnabled(true)
            .build();
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData data, Option<StorageLockFile> before) {
    PutObjectRequest request = put(key, StorageLockFile.toByteArray(data));
    if (before.isPresent()) {
      request.putCustomRequestHeader("If-Match", "\"" + before.get().getVersionId() + "\"");
    } else {
      request.putCustomRequestHeader("If-None-Match", "*");
    }
    try {
      String version = s3.putObject(request).getETag();
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, version)));
    } catch (AmazonServiceException error) {
      boolean taken = error.getStatusCode() == 412 || error.getStatusCode() == 404;
      return Pair.of(
          taken ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR,
          Option.empty());
    }
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    try (S3Object found = s3.getObject(bucket, key)) {
      String version = found.getObjectMetadata().getETag();
      return Pair.of(
          LockGetResult.SUCCESS,
          Option.of(StorageLockFile.createFromStream(found.getObjectContent(), version)));
    } catch (AmazonServiceException error) {
      boolean missing = error.getStatusCode() == 404;
      return Pair.of(
          missing ? LockGetResult.NOT_EXISTS : LockGetResult.UNKNOWN_ERROR, Option.empty());
    } catch (IOException error) {
      return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Option<String> readObject(String path, boolean checkFirst) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(path);
    boolean there = s3.doesObjectExist(place.getLeft(), place.getRight());
    return there
        ? Option.of(s3.getObjectAsString(place.getLeft(), place.getRight()))
        : Option.empty();
  }

  @Override
  public boolean writeObject(String path, String content) {
    String to = StorageLockClient.parseBucketAndPath(path).getRight();
    s3.putObject(put(to, content.getBytes(StandardCharsets.UTF_8)));
    return true;
  }

  @Override
  public void close() {
    s3.shutdown();
  }

  private PutObjectRequest put(String to, byte[] bytes) {
    ObjectMetadata metadata = new ObjectMetadata();
    metadata.setContentLength(bytes.length);
    return new PutObjectRequest(bucket, to, new ByteArrayInputStream(bytes), metadata);
  }
}
