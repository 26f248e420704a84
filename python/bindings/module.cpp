// The extension module oar._C.
#include "collate.h"
#include "common.h"
#include "spelling.h"

namespace {

PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "oar._C",
                       "The native part of Oar.",
                       -1,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  using namespace oar::python;
  return guarded([]() -> PyObject* {
    Ref module = checked(PyModule_Create(&kModule));
    init_errors(module.get());
    init_frames(module.get());
    init_dtype_type(module.get());
    init_dim_type(module.get());
    init_op_type(module.get());
    init_spelling(module.get());
    init_tensor_type(module.get());
    init_autograd(module.get());
    init_framework(module.get());
    init_user_ops(module.get());
    init_programs(module.get());
    init_model_files(module.get());
    init_profile(module.get());
    init_segments(module.get());
    init_images(module.get());
    init_paddle_models(module.get());
    init_drawing(module.get());
    init_onnx_models(module.get());
    init_graph_models(module.get());
    init_gguf(module.get());
    init_ocr(module.get());
    init_sparse(module.get());
    init_sharded(module.get());
    init_collate(module.get());
    init_control(module.get());
    init_distributed(module.get());
    init_parameter_server(module.get());
    init_static(module.get());
    init_guards(module.get());
    init_call_keys(module.get());
    init_static_calls(module.get());
    return module.release();
  });
}
