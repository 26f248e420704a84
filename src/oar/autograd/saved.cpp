#include "oar/autograd/saved.h"

#include <utility>

#include "oar/autograd/node.h"

namespace oar {
namespace {

// What a hook computes is not recorded, and passes through no hook.
class InsideHook {
 public:
  InsideHook() : mode_(false), outer_(std::exchange(t_pack_hook, nullptr)) {}
  ~InsideHook() { t_pack_hook = outer_; }
  InsideHook(const InsideHook&) = delete;
  InsideHook& operator=(const InsideHook&) = delete;

 private:
  GradMode mode_;
  const SavedTensorHook* outer_;
};

}  // namespace

UnpackHook packed(const Tensor& t) {
  const SavedTensorHook* const hook = t_pack_hook;
  if (!hook || t.kind() != hook->kind()) return {};
  if (t.is_dense() && (t_layers.on & kCapture)) return {};
  const InsideHook inside;
  return hook->pack(Tensor(t->alias()));
}

Tensor unpacked(const UnpackHook& unpack, const Tensor& like, std::string_view name) {
  const InsideHook inside;
  const Tensor t = unpack();
  user_check(t.defined() && t.shape() == like.shape() && t.dtype() == like.dtype(),
             ErrorKind::InvalidArgument,
             "the unpack hook returned {} for a tensor of shape {} and dtype {} that {} has saved."
             "\nhint: Return a tensor with the content that the pack hook got.",
             t.defined() ? t.describe() : "None", to_string(like.dims()), name_of(like.dtype()),
             name);
  return detach(t);
}

}  // namespace oar
