/* Saved models in C: a predictor is created from a file, fed and read by names.
 *
 *   oar_predictor* p = oar_predictor_create("digits.oar", NULL);
 *   if (!p) { puts(oar_last_error()); exit(1); }
 *   const int64_t shape[] = {1, 1, 8, 8};
 *   oar_tensor_view digit;
 *   if (oar_predictor_set_input(p, "image", "float32", shape, 4, pixels) ||
 *       oar_predictor_run(p) || oar_predictor_output(p, "digit", &digit))
 *     puts(oar_last_error());
 *   oar_predictor_free(p);
 *
 * A function that returns int returns 0 if it succeeded; one that returns a pointer returns NULL if it failed. Then
 * oar_last_error has the reason. Texts and memory belong to the predictor. A predictor is used by one thread at a time; clones, which
 * share program and weights, run at the same time.
 */
#ifndef OAR_RUNTIME_OAR_C_H_
#define OAR_RUNTIME_OAR_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OAR_C_API __attribute__((visibility("default")))

typedef struct oar_predictor oar_predictor;

typedef struct oar_tensor_view {
  const char* dtype; /* "float32" */
  const int64_t* shape;
  size_t rank;
  const void* data; /* row-major */
} oar_tensor_view;

/* A model that jit.save or save_inference_model wrote: an .oar file, or the prefix of two files. NULL is the method "forward". */
OAR_C_API oar_predictor* oar_predictor_create(const char* path, const char* method);
OAR_C_API oar_predictor* oar_predictor_clone(const oar_predictor* predictor);
OAR_C_API void oar_predictor_free(oar_predictor* predictor); /* NULL is allowed */

/* The i-th name; NULL after the last one. */
OAR_C_API const char* oar_predictor_input_name(const oar_predictor* predictor, size_t i);
OAR_C_API const char* oar_predictor_output_name(const oar_predictor* predictor, size_t i);

/* The memory is not copied: it stays valid and unchanged until the end of the run. */
OAR_C_API int oar_predictor_set_input(oar_predictor* predictor, const char* name, const char* dtype,
                                      const int64_t* shape, size_t rank, const void* data);
OAR_C_API int oar_predictor_run(oar_predictor* predictor);
/* Valid until the next run. */
OAR_C_API int oar_predictor_output(oar_predictor* predictor, const char* name,
                                   oar_tensor_view* view);

/* Why the last failing call of this thread failed. */
OAR_C_API const char* oar_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
