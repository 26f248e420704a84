#include "oar/interop/pytorch/state_dict.h"

#include "oar/base/error.h"
#include "oar/interop/pytorch/tensor_pickle.h"

namespace oar::pytorch {
namespace {

class StateReader : public TensorPickle {
 public:
  StateReader(std::string_view pickle, const ZipFile& zip, const std::string& folder)
      : TensorPickle(pickle, zip, folder + "data/", "State dicts hold tensors by name.") {}

  NamedTensors whole() {
    NamedTensors named;
    const ItemPtr state = run();
    if (state->kind != Item::Dict) refused("something else than a dictionary");
    for (size_t i = 0; i + 1 < state->items.size(); i += 2)
      if (state->items[i]->kind == Item::Text && state->items[i + 1]->kind == Item::Array)
        named[state->items[i]->text] = state->items[i + 1]->array;
    return named;
  }
};

}  // namespace

NamedTensors saved_tensors(const ZipFile& zip) {
  constexpr std::string_view kPickle = "/data.pkl";
  for (const ZipFile::Entry& entry : zip.entries())
    if (entry.name.ends_with(kPickle)) {
      const std::string folder = entry.name.substr(0, entry.name.size() - kPickle.size() + 1);
      const std::string pickle = zip.content(entry);
      return StateReader(pickle, zip, folder).whole();
    }
  fail(ErrorKind::InvalidArgument, "the archive has no tensors: there is no data.pkl.");
}

}  // namespace oar::pytorch
