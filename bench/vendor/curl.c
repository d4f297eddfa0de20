/* curl.c - the requests of a client by plain libcurl: no client that uses libcurl can need less.
 * What it sends is recorded from ours, head and body. Prints its figures as JSON.
 *
 * argv: the server's URL, "shell", "flight" or "files", how often, the recorded request. */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define FILE_BYTES ((size_t)64 << 20)
enum { IN_FLIGHT = 64, MAX_HEAD = 64 * 1024, BUFFER = 512 * 1024 };

typedef struct request {
  char url[512];
  struct curl_slist *headers;
  char *body;
  size_t len;
} request;

/* What has come of a reply. */
typedef struct taken {
  char *bytes;
  size_t len, room;
} taken;

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "bench curl: %s\n", what);
  exit(1);
}

static void *must(void *memory) {
  if (memory == NULL)
    fail("no memory");
  return memory;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The recorded one: "METHOD PATH", header lines, an empty line, the body. */
static request read_request(const char *base, const char *file) {
  request r = {.body = must(malloc(MAX_HEAD))};
  char line[1024], path[256];
  FILE *in = fopen(file, "rb");
  if (in == NULL || fgets(line, sizeof line, in) == NULL || sscanf(line, "%*15s %255s", path) != 1)
    fail("cannot read the recorded request");
  snprintf(r.url, sizeof r.url, "%s%s", base, path);
  while (fgets(line, sizeof line, in) != NULL && line[0] != '\n') {
    line[strcspn(line, "\n")] = '\0';
    r.headers = must(curl_slist_append(r.headers, line));
  }
  r.len = fread(r.body, 1, MAX_HEAD, in);
  fclose(in);
  return r;
}

static size_t take(char *bytes, size_t size, size_t count, void *arg) {
  taken *t = arg;
  if (t->len + size * count > t->room)
    fail("a reply is longer than it said");
  memcpy(t->bytes + t->len, bytes, size * count);
  t->len += size * count;
  return size * count;
}

static CURL *prepare(const request *r, taken *t) {
  CURL *easy = must(curl_easy_init());
  curl_easy_setopt(easy, CURLOPT_URL, r->url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, r->headers);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
  if (r->body != NULL) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
  }
  return easy;
}

static void check(CURL *easy, CURLcode rc) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (rc != CURLE_OK || status != 200)
    fail(rc != CURLE_OK ? curl_easy_strerror(rc) : "an unexpected status");
}

/* ---- measures ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double quantile(double *values, int count, double q) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  int at = (int)(q * count);
  return values[at < count ? at : count - 1];
}

static void timed(CURL *easy, taken *t, int count, const char *name, const char *end) {
  double *times = must(malloc(sizeof *times * (size_t)count));
  double cpu = cpu_us();
  for (int i = 0; i < count; i++) {
    double start = now_us();
    t->len = 0;
    check(easy, curl_easy_perform(easy));
    times[i] = now_us() - start;
  }
  cpu = (cpu_us() - cpu) / count;
  double p50 = quantile(times, count, 0.5), p99 = quantile(times, count, 0.99);
  printf("\"%s\":{\"cpu\":%.3f,\"p50\":%.3f,\"p99\":%.3f}%s", name, cpu, p50, p99, end);
  free(times);
}

/* One after the other: the first ones, and once it is warm. */
static void measure_shell(const request *r, int count) {
  char reply[MAX_HEAD];
  taken t = {.bytes = reply, .room = sizeof reply};
  CURL *easy = prepare(r, &t);
  printf("{");
  timed(easy, &t, count / 10, "first", ",");
  timed(easy, &t, count, "between", ",");
  timed(easy, &t, count, "warm", "}\n");
  curl_easy_cleanup(easy);
}

static void run_flight(CURLM *multi, CURL **easies, taken *t, int count) {
  int begun = 0, ended = 0, running = 0, left = 0;
  for (; begun < IN_FLIGHT; begun++)
    curl_multi_add_handle(multi, easies[begun]);
  while (ended < count) {
    CURLMsg *said;
    curl_multi_perform(multi, &running);
    while ((said = curl_multi_info_read(multi, &left)) != NULL) {
      CURL *easy = said->easy_handle;
      size_t i = 0;
      check(easy, said->data.result);
      while (easies[i] != easy)
        i++;
      t[i].len = 0;
      ended++;
      curl_multi_remove_handle(multi, easy);
      if (begun < count) {
        curl_multi_add_handle(multi, easy);
        begun++;
      }
    }
    if (ended < count)
      curl_multi_poll(multi, NULL, 0, 1000, NULL);
  }
}

/* So many at a time: commands per second. */
static void measure_flight(const request *r, int count) {
  static char replies[IN_FLIGHT][1024];
  taken t[IN_FLIGHT];
  CURL *easies[IN_FLIGHT];
  CURLM *multi = must(curl_multi_init());
  for (int i = 0; i < IN_FLIGHT; i++) {
    t[i] = (taken){.bytes = replies[i], .room = sizeof replies[i]};
    easies[i] = prepare(r, &t[i]);
  }
  run_flight(multi, easies, t, count);
  double start = now_us();
  run_flight(multi, easies, t, count);
  printf("%.3f\n", count / (now_us() - start) * 1e6);
}

static double file_once(const request *r) {
  taken t = {.bytes = must(malloc(FILE_BYTES)), .room = FILE_BYTES};
  static CURL *easies[2];
  CURL **easy = &easies[r->body != NULL];
  double start = now_us();
  if (*easy == NULL)
    *easy = prepare(r, &t);
  curl_easy_setopt(*easy, CURLOPT_WRITEDATA, &t);
  check(*easy, curl_easy_perform(*easy));
  double took = now_us() - start;
  if (r->body == NULL && t.len != FILE_BYTES)
    fail("a file of another length");
  free(t.bytes);
  return took / 1000;
}

/* A large file read, and written as a form. */
static void measure_files(request *r, int count) {
  static const char head[] = "--cut\r\nContent-Disposition: form-data; name=\"file\"; "
                             "filename=\"big\"\r\n\r\n";
  static const char tail[] = "\r\n--cut--\r\n";
  size_t file_at = sizeof head - 1, tail_at = file_at + FILE_BYTES;
  request get = {.headers = r->headers}, put = {.len = tail_at + sizeof tail - 1};
  put.body = must(malloc(put.len));
  memcpy(put.body, head, file_at);
  memset(put.body + file_at, 'x', FILE_BYTES);
  memcpy(put.body + tail_at, tail, sizeof tail - 1);
  put.headers = must(curl_slist_append(NULL, "Content-Type: multipart/form-data; boundary=cut"));
  put.headers = must(curl_slist_append(put.headers, "Expect:"));
  char *path = strstr(r->url + strlen("http://"), "/");
  strcpy(path, "/files?path=big");
  strcpy(get.url, r->url);
  strcpy(put.url, r->url);
  get.headers = NULL;
  printf("{\"read\":[");
  double *writes = must(malloc(sizeof *writes * (size_t)count));
  for (int i = 0; i < count; i++) {
    printf("%s%.3f", i > 0 ? "," : "", file_once(&get));
    writes[i] = file_once(&put);
  }
  printf("],\"write\":[");
  for (int i = 0; i < count; i++)
    printf("%s%.3f", i > 0 ? "," : "", writes[i]);
  printf("]}\n");
}

int main(int argc, char **argv) {
  if (argc != 5)
    fail("four arguments are needed");
  int count = atoi(argv[3]);
  curl_global_init(CURL_GLOBAL_ALL);
  request r = read_request(argv[1], argv[4]);
  if (strcmp(argv[2], "shell") == 0)
    measure_shell(&r, count);
  else if (strcmp(argv[2], "flight") == 0)
    measure_flight(&r, count);
  else
    measure_files(&r, count);
  return 0;
}
