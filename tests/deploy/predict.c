/* Reads digits through the C interface, in two threads with clones of one predictor.
 *
 *   predict MODEL.oar IMAGES.raw COUNT CHANNELS ROWS COLUMNS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oar/runtime/oar_c.h"

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, oar_last_error());
  exit(1);
}

struct job {
  oar_predictor* predictor;
  int64_t shape[4];
  const float* images;
  int64_t* digits;
};

static void* read_digits(void* context) {
  struct job* job = context;
  oar_tensor_view view;
  expect(!oar_predictor_set_input(job->predictor, "image", "float32", job->shape, 4, job->images),
         "set_input");
  for (int repeat = 0; repeat < 3; ++repeat)
    expect(!oar_predictor_run(job->predictor), "run");
  expect(!oar_predictor_output(job->predictor, "digit", &view), "output");
  expect(strcmp(view.dtype, "int64") == 0, "dtype of digit");
  expect(view.rank >= 1 && view.shape[0] == job->shape[0], "shape of digit");
  memcpy(job->digits, view.data, (size_t)job->shape[0] * sizeof(int64_t));
  return NULL;
}

static void check_errors(oar_predictor* predictor) {
  oar_tensor_view view;
  const int64_t negative[] = {-1}, one[] = {1};
  expect(oar_predictor_create("nothing.oar", NULL) == NULL && strstr(oar_last_error(), "nothing.oar"),
         "a missing file");
  expect(oar_predictor_create(NULL, NULL) == NULL, "no path");
  expect(oar_predictor_run(predictor) != 0 && strstr(oar_last_error(), "image"), "a missing input");
  expect(oar_predictor_output(predictor, "digit", &view) != 0, "an output before a run");
  expect(oar_predictor_set_input(predictor, "picture", "float32", one, 1, one) != 0 &&
             strstr(oar_last_error(), "image"),
         "an unknown input");
  expect(oar_predictor_set_input(predictor, "image", "float33", one, 1, one) != 0, "a dtype");
  expect(oar_predictor_set_input(predictor, "image", "float32", negative, 1, one) != 0, "a size");
  expect(oar_predictor_set_input(predictor, "image", "float32", one, 1, NULL) != 0, "no content");
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  int64_t shape[4], size = 1;
  for (int i = 0; i < 4; ++i) size *= shape[i] = atoll(argv[3 + i]);
  float* images = malloc((size_t)size * sizeof(float));
  int64_t* digits = malloc((size_t)shape[0] * sizeof(int64_t));
  FILE* file = fopen(argv[2], "rb");
  if (!images || !digits || !file || fread(images, sizeof(float), (size_t)size, file) != (size_t)size)
    return 3;
  fclose(file);

  oar_predictor* first = oar_predictor_create(argv[1], NULL);
  expect(first != NULL, argv[1]);
  check_errors(first);
  expect(strcmp(oar_predictor_input_name(first, 0), "image") == 0, "name of the input");
  expect(oar_predictor_input_name(first, 1) == NULL, "one input");
  expect(oar_predictor_output_name(first, 1) != NULL, "two outputs");
  oar_predictor* second = oar_predictor_clone(first);
  const int64_t half = shape[0] / 2, each = size / shape[0];
  struct job jobs[2] = {
      {first, {half, shape[1], shape[2], shape[3]}, images, digits},
      {second, {shape[0] - half, shape[1], shape[2], shape[3]}, images + half * each, digits + half}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, read_digits, &jobs[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  for (int64_t i = 0; i < shape[0]; ++i) printf("%lld\n", (long long)digits[i]);
  oar_predictor_free(first);
  oar_predictor_free(second);
  free(images);
  free(digits);
  return 0;
}
