// oneDNN as a library that is loaded when it is first needed, and may be missing. None of its headers
// is included outside this folder.
#pragma once

#include <oneapi/dnnl/dnnl.h>

namespace oar::cpu::onednn {

#define OAR_ONEDNN_FUNCTIONS(F)                              \
  F(dnnl_convolution_backward_data_primitive_desc_create)    \
  F(dnnl_convolution_backward_weights_primitive_desc_create) \
  F(dnnl_convolution_forward_primitive_desc_create)          \
  F(dnnl_engine_create)                                      \
  F(dnnl_matmul_primitive_desc_create)                       \
  F(dnnl_memory_create)                                      \
  F(dnnl_memory_desc_create_with_strides)                    \
  F(dnnl_memory_desc_destroy)                                \
  F(dnnl_memory_desc_equal)                                  \
  F(dnnl_memory_desc_get_size)                               \
  F(dnnl_memory_desc_clone)                                  \
  F(dnnl_memory_desc_create_with_tag)                        \
  F(dnnl_memory_destroy)                                     \
  F(dnnl_memory_set_data_handle)                             \
  F(dnnl_post_ops_append_binary)                             \
  F(dnnl_post_ops_append_eltwise)                            \
  F(dnnl_post_ops_create)                                    \
  F(dnnl_post_ops_destroy)                                   \
  F(dnnl_primitive_attr_create)                              \
  F(dnnl_primitive_attr_destroy)                             \
  F(dnnl_primitive_attr_set_post_ops)                        \
  F(dnnl_primitive_attr_set_scratchpad_mode)                 \
  F(dnnl_primitive_create)                                   \
  F(dnnl_primitive_desc_destroy)                             \
  F(dnnl_primitive_desc_query)                               \
  F(dnnl_primitive_desc_query_md)                            \
  F(dnnl_primitive_destroy)                                  \
  F(dnnl_primitive_execute)                                  \
  F(dnnl_reorder_primitive_desc_create)                      \
  F(dnnl_set_max_cpu_isa)                                    \
  F(dnnl_set_primitive_cache_capacity)                       \
  F(dnnl_stream_create)                                      \
  F(dnnl_stream_destroy)                                     \
  F(dnnl_version)

struct Library {
#define OAR_MEMBER(name) decltype(&::name) name;
  OAR_ONEDNN_FUNCTIONS(OAR_MEMBER)
#undef OAR_MEMBER
  dnnl_engine_t engine;
  dnnl_primitive_attr_t attributes;  // working memory is the caller's
  bool fast_bfloat16;                // its 16-bit products beat float32
};

// Null if it cannot be loaded or is switched off. Loading happens once, in the first call.
const Library* library();
// For callers that have checked that it is loaded.
const Library& api();

void check(dnnl_status_t status, const char* what);

// Into how many pieces a call is cut: one per thread that it may use. Our threads run them, and oneDNN uses one thread
// for each: its own team would wait for threads that have no processor.
int wanted_pieces();

// While alive, oneDNN uses one thread when this thread calls it. The setting of other OpenMP users is restored.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int outer_;
};

}  // namespace oar::cpu::onednn
