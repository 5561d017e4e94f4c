// Google Cloud Storage for the tests: fake-gcs-server keeps the objects, in memory, and this program stands
// before it with what it lacks of the XML API, by which object_store writes: conditional puts, uploads in
// parts, lists in pages, errors. Tokens are checked: one that is given, those that it gives out as a machine's
// metadata server, and those that a service account signs, whose file it writes.
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

const (
	tokenPath  = "/computeMetadata/v1/instance/service-accounts/default/token"
	generation = "X-Goog-Generation"
	condition  = "X-Goog-If-Generation-Match"
	metadata   = "X-Goog-Meta-"
	smallest   = 5 << 20
	email      = "tests@project.iam.gserviceaccount.com"
)

type upload struct {
	bucket, name string
	header       http.Header
	parts        map[int][]byte
}

type front struct {
	store    *fakestorage.Server
	token    string
	key      *rsa.PrivateKey
	page     int
	lifetime time.Duration

	mutex   sync.Mutex
	uploads map[string]*upload
	issued  map[string]time.Time
}

type failure struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Details string `xml:",omitempty"`
}

func main() {
	token := flag.String("token", "", "what requests are authorized by")
	page := flag.Int("page", 1000, "objects in one page of a list")
	account := flag.String("account", "", "the file to write of a service account")
	lifetime := flag.Duration("lifetime", time.Hour, "of a token that is given out")
	flag.Parse()
	store := must(fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true}))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := fmt.Sprintf("http://%s", listener.Addr())
	key := must(rsa.GenerateKey(rand.Reader, 2048))
	must(0, writeAccount(*account, server, key))
	handler := &front{
		store: store, token: *token, key: key, page: *page, lifetime: *lifetime,
		uploads: map[string]*upload{}, issued: map[string]time.Time{},
	}
	fmt.Printf("listens on %s\n", server)
	must(0, http.Serve(listener, handler))
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func writeAccount(path, server string, key *rsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil || path == "" {
		return err
	}
	said, err := json.Marshal(map[string]string{
		"type":           "service_account",
		"client_email":   email,
		"private_key_id": "1",
		"private_key":    string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"gcs_base_url":   server,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, said, 0o600)
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, "/storage/v1/"), strings.HasPrefix(path, "/upload/storage/v1/"):
		// The JSON API, by which tests look at what is there.
		f.store.HTTPHandler().ServeHTTP(w, r)
	case path == tokenPath:
		f.issue(w)
	case !f.isAuthorized(r):
		fail(w, http.StatusUnauthorized, "AuthenticationRequired", "Authentication required.", "of "+path)
	default:
		f.xml(w, r, path)
	}
}

func (f *front) issue(w http.ResponseWriter) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	token := fmt.Sprintf("machine-%d", len(f.issued))
	f.issued[token] = time.Now().Add(f.lifetime)
	seconds := int(f.lifetime.Seconds())
	json.NewEncoder(w).Encode(map[string]any{"access_token": token, "expires_in": seconds})
}

func (f *front) isAuthorized(r *http.Request) bool {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return token == f.token || time.Now().Before(f.issued[token]) || f.isSigned(token)
}

// isSigned is whether the service account signed the token, and for now.
func (f *front) isSigned(token string) bool {
	signed, signature, _ := cutLast(token, ".")
	_, claims, _ := cutLast(signed, ".")
	bytes, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	digest := sha256.Sum256([]byte(signed))
	if rsa.VerifyPKCS1v15(&f.key.PublicKey, crypto.SHA256, digest[:], bytes) != nil {
		return false
	}
	var said struct {
		Iss string
		Exp int64
	}
	bytes, err = base64.RawURLEncoding.DecodeString(claims)
	if err != nil || json.Unmarshal(bytes, &said) != nil {
		return false
	}
	return said.Iss == email && time.Now().Unix() < said.Exp
}

func cutLast(text, at string) (string, string, bool) {
	found := strings.LastIndex(text, at)
	if found < 0 {
		return text, "", false
	}
	return text[:found], text[found+len(at):], true
}

func (f *front) xml(w http.ResponseWriter, r *http.Request, path string) {
	bucket, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	bucket, _ = url.PathUnescape(bucket)
	name, err := url.PathUnescape(name)
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidArgument", err.Error(), "")
		return
	}
	query := r.URL.Query()
	switch {
	case name == "" && r.Method == http.MethodGet:
		f.list(w, bucket, query)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		f.get(w, r, bucket, name)
	case r.Method == http.MethodPut && query.Has("uploadId"):
		f.part(w, r, query)
	case r.Method == http.MethodPut:
		f.put(w, r.Body, r.Header, bucket, name)
	case r.Method == http.MethodPost && query.Has("uploads"):
		f.begin(w, r, bucket, name)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		f.complete(w, r, query.Get("uploadId"))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		f.take(query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		f.remove(w, bucket, name)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method, "")
	}
}

type content struct {
	Key          string
	Generation   int64
	LastModified string
	ETag         string
	Size         int64
}

type prefix struct{ Prefix string }

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	CommonPrefixes        []prefix
	Contents              []content
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
}

func (f *front) list(w http.ResponseWriter, bucket string, query url.Values) {
	found, err := f.store.ListObjectsWithOptionsPaginated(bucket, fakestorage.ListOptions{
		Prefix:     query.Get("prefix"),
		Delimiter:  query.Get("delimiter"),
		PageToken:  query.Get("continuation-token"),
		MaxResults: f.page,
	})
	if err != nil {
		noBucket(w)
		return
	}
	result := listing{
		Name:                  bucket,
		Prefix:                query.Get("prefix"),
		IsTruncated:           found.NextPageToken != "",
		NextContinuationToken: found.NextPageToken,
	}
	for _, one := range found.Prefixes {
		result.CommonPrefixes = append(result.CommonPrefixes, prefix{one})
	}
	for _, one := range found.Objects {
		result.Contents = append(result.Contents, content{
			Key: one.Name, Generation: one.Generation, ETag: tag(one.Generation), Size: one.Size,
			LastModified: one.Updated.UTC().Format("2006-01-02T15:04:05.000Z"),
		})
	}
	answer(w, http.StatusOK, result)
}

func (f *front) get(w http.ResponseWriter, r *http.Request, bucket, name string) {
	if !f.hasBucket(bucket) {
		noBucket(w)
		return
	}
	found, err := f.store.GetObjectStreaming(bucket, name)
	if err != nil {
		noKey(w)
		return
	}
	defer found.Close()
	header := w.Header()
	header.Set(generation, strconv.FormatInt(found.Generation, 10))
	header.Set("ETag", tag(found.Generation))
	header.Set("Content-Type", found.ContentType)
	for key, value := range found.Metadata {
		header.Set(metadata+key, value)
	}
	http.ServeContent(w, r, "", found.Updated, found.Content)
}

// put stores an object by the JSON API, which has conditions.
func (f *front) put(w http.ResponseWriter, body io.Reader, header http.Header, bucket, name string) {
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	if asked := header.Get(condition); asked != "" {
		query.Set("ifGenerationMatch", asked)
	}
	target := fmt.Sprintf("/upload/storage/v1/b/%s/o?%s", url.PathEscape(bucket), query.Encode())
	inner := httptest.NewRequest(http.MethodPost, target, body)
	inner.Header.Set("Content-Type", header.Get("Content-Type"))
	for key, values := range header {
		if strings.HasPrefix(key, metadata) {
			inner.Header[key] = values
		}
	}
	done := httptest.NewRecorder()
	f.store.HTTPHandler().ServeHTTP(done, inner)
	var made struct{ Generation string }
	switch err := json.Unmarshal(done.Body.Bytes(), &made); {
	case done.Code == http.StatusPreconditionFailed:
		fail(w, done.Code, "PreconditionFailed", "A condition of the request was not met.", "")
	case done.Code == http.StatusNotFound:
		noBucket(w)
	case done.Code != http.StatusOK || err != nil:
		fail(w, http.StatusInternalServerError, "InternalError", done.Body.String(), "")
	default:
		w.Header().Set(generation, made.Generation)
		w.Header().Set("ETag", fmt.Sprintf("%q", made.Generation))
		w.WriteHeader(http.StatusOK)
	}
}

func (f *front) remove(w http.ResponseWriter, bucket, name string) {
	target := fmt.Sprintf("/storage/v1/b/%s/o/%s", url.PathEscape(bucket), url.PathEscape(name))
	done := httptest.NewRecorder()
	f.store.HTTPHandler().ServeHTTP(done, httptest.NewRequest(http.MethodDelete, target, nil))
	switch {
	case done.Code < 300:
		w.WriteHeader(http.StatusNoContent)
	case f.hasBucket(bucket):
		noKey(w)
	default:
		noBucket(w)
	}
}

func (f *front) begin(w http.ResponseWriter, r *http.Request, bucket, name string) {
	if !f.hasBucket(bucket) {
		noBucket(w)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	id := fmt.Sprintf("upload-%d-%s", time.Now().UnixNano(), name)
	f.uploads[id] = &upload{bucket, name, r.Header.Clone(), map[int][]byte{}}
	answer(w, http.StatusOK, struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		UploadId string
	}{UploadId: id})
}

func (f *front) part(w http.ResponseWriter, r *http.Request, query url.Values) {
	number, err := strconv.Atoi(query.Get("partNumber"))
	bytes, cut := io.ReadAll(r.Body)
	if err != nil || cut != nil {
		fail(w, http.StatusBadRequest, "InvalidArgument", "of a part", "")
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	begun := f.uploads[query.Get("uploadId")]
	if begun == nil {
		noUpload(w)
		return
	}
	begun.parts[number] = bytes
	w.Header().Set("ETag", fmt.Sprintf("%q", query.Get("partNumber")))
	w.WriteHeader(http.StatusOK)
}

func (f *front) complete(w http.ResponseWriter, r *http.Request, id string) {
	var asked struct {
		Part []struct{ PartNumber int }
	}
	if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
		fail(w, http.StatusBadRequest, "MalformedXML", err.Error(), "")
		return
	}
	begun := f.take(id)
	if begun == nil {
		noUpload(w)
		return
	}
	var parts [][]byte
	for at, one := range asked.Part {
		bytes, known := begun.parts[one.PartNumber]
		if !known || (at < len(asked.Part)-1 && len(bytes) < smallest) {
			fail(w, http.StatusBadRequest, "InvalidPart", "A part is missing or too small.", "")
			return
		}
		parts = append(parts, bytes)
	}
	done := httptest.NewRecorder()
	whole := strings.NewReader(string(slices.Concat(parts...)))
	f.put(done, whole, begun.header, begun.bucket, begun.name)
	if done.Code != http.StatusOK {
		fail(w, done.Code, "InternalError", done.Body.String(), "")
		return
	}
	w.Header().Set(generation, done.Header().Get(generation))
	answer(w, http.StatusOK, struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		ETag    string
	}{ETag: done.Header().Get("ETag")})
}

func (f *front) take(id string) *upload {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	begun := f.uploads[id]
	delete(f.uploads, id)
	return begun
}

func (f *front) hasBucket(name string) bool {
	_, err := f.store.ListObjectsWithOptionsPaginated(name, fakestorage.ListOptions{Prefix: "\x00"})
	return err == nil
}

func tag(of int64) string { return fmt.Sprintf("%q", strconv.FormatInt(of, 10)) }

func noBucket(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist.", "")
}

func noKey(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.", "")
}

func noUpload(w http.ResponseWriter) {
	fail(w, http.StatusNotFound, "NoSuchUpload", "The upload does not exist.", "")
}

func fail(w http.ResponseWriter, status int, code, message, details string) {
	answer(w, status, failure{Code: code, Message: message, Details: details})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
	w.WriteHeader(status)
	io.WriteString(w, xml.Header)
	xml.NewEncoder(w).Encode(body)
}
