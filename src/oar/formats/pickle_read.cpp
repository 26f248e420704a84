#include <algorithm>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/formats/numpy_types.h"
#include "oar/formats/pickle.h"
#include "oar/formats/pickle_machine.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

class PickleReader : public PickleMachine {
 public:
  explicit PickleReader(std::string_view file)
      : PickleMachine(file, "Files of Paddle hold dictionaries, lists, numbers, text and arrays.") {
  }

  StateTree whole() { return converted(*run(), 0); }

 private:
  bool knows(std::string_view name) const override {
    static constexpr std::string_view known[] = {"numpy.ndarray",
                                                 "numpy.dtype",
                                                 "numpy.core.multiarray._reconstruct",
                                                 "numpy.core.multiarray.scalar",
                                                 "collections.OrderedDict",
                                                 "_codecs.encode"};
    return std::find(std::begin(known), std::end(known), name) != std::end(known);
  }

  // calls ----------------------------------------------------------------------------------------

  void call(const std::string& name, const std::vector<ItemPtr>& given) override {
    if (name == "collections.OrderedDict" && given.empty()) {
      push(Item::Dict);
    } else if (name == "numpy.dtype" && !given.empty() && given[0]->kind == Item::Text) {
      const std::optional<DType> dtype = dtype_of_numpy(given[0]->text);
      if (!dtype) refused(format("an array of the dtype '{}'", given[0]->text.substr(0, 20)));
      push(Item::Type).dtype = dtype;
    } else if (name == "numpy.core.multiarray._reconstruct") {
      push(Item::Array);
    } else if (name == "numpy.core.multiarray.scalar" && given.size() == 2) {
      push_scalar(*given[0], *given[1]);
    } else if (name == "_codecs.encode" && given.size() == 2 && given[0]->kind == Item::Text) {
      push_encoded(given[0]->text);
    } else {
      refused(format("a call of '{}' with other arguments", name));
    }
  }

  // Protocol 2 has bytes as text whose letters are the bytes.
  void push_encoded(std::string_view text) {
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c < 0x80) {
        bytes += text[i];
      } else if ((c == 0xc2 || c == 0xc3) && i + 1 < text.size()) {
        bytes += static_cast<char>(((c & 3) << 6) | (static_cast<unsigned char>(text[++i]) & 0x3f));
      } else {
        damaged("a text does not stand for bytes");
      }
    }
    push(Item::Bytes).text = std::move(bytes);
  }

  static std::string_view bytes_of_item(const Item& item) {
    return item.bytes.data() ? item.bytes : item.text;
  }

  Tensor made_array(const Shape& shape, const Item& type, const Item& data) {
    if (type.kind != Item::Type || data.kind != Item::Bytes) damaged("an array without its parts");
    const std::string_view bytes = bytes_of_item(data);
    bytes_of(shape, *type.dtype);  // an error where it is beyond all memory
    if (byte_count(shape.numel().value(), *type.dtype) != static_cast<int64_t>(bytes.size()))
      damaged("an array's data does not fit its shape");
    const Tensor made = Tensor::empty(shape, *type.dtype);
    if (!bytes.empty()) std::memcpy(made->data, bytes.data(), bytes.size());
    return made;
  }

  void push_scalar(const Item& type, const Item& data) {
    const Tensor made = made_array({}, type, data);
    if (is_floating(made.dtype()))
      push(Item::Real).real = made.item_double();
    else if (is_bool(made.dtype()))
      push(Item::Bool).integer = made.item_int();
    else if (is_integral(made.dtype()))
      push(Item::Int).integer = made.item_int();
    else
      refused("a number of a rare dtype");
  }

  void build(const Item& state, Item& object) override {
    if (state.kind != Item::Tuple) damaged("a state of something else");
    if (object.kind == Item::Type) {
      if (state.items.size() > 1 && state.items[1]->text == ">")
        refused("numbers with their bytes in reverse order");
      return;
    }
    if (object.kind != Item::Array || state.items.size() < 4) damaged("a state of something else");
    const ItemPtr* parts = &state.items[state.items.size() - 4];
    if (parts[0]->kind != Item::Tuple || parts[0]->items.size() > 64)
      damaged("an array without its shape");
    Shape shape;
    for (const ItemPtr& size : parts[0]->items) {
      if (size->kind != Item::Int || size->integer < 0) damaged("an array of a shape that is none");
      shape.push_back(size->integer);
    }
    if (parts[2]->kind == Item::Bool && parts[2]->integer != 0 && shape.size() > 1)
      refused("an array in Fortran's order");
    object.array = made_array(shape, *parts[1], *parts[3]);
  }

  // result ---------------------------------------------------------------------------------------

  StateTree converted(const Item& item, int depth) {
    if (depth > kDeepest) damaged("containers are nested too deeply");
    if (++converted_ > kMostValues) damaged("it has too many values");
    switch (item.kind) {
      case Item::None:
        return {};
      case Item::Bool:
        return StateTree(item.integer != 0);
      case Item::Int:
        return StateTree(item.integer);
      case Item::Word:
        return StateTree(item.word);
      case Item::Real:
        return StateTree(item.real);
      case Item::Text:
        return StateTree(item.text);
      case Item::Array:
        if (!item.array.defined()) damaged("an array without content");
        return StateTree(item.array);
      case Item::List:
      case Item::Tuple:
        return converted_list(item, depth);
      case Item::Dict: {
        StateTree::Dict dict;
        for (size_t i = 0; i < item.items.size(); i += 2) {
          if (item.items[i]->kind != Item::Text) refused("a dictionary whose keys are not text");
          dict.emplace_back(item.items[i]->text, converted(*item.items[i + 1], depth + 1));
        }
        return StateTree(std::move(dict));
      }
      default:
        refused("bytes or names alone");
    }
  }
  StateTree converted_list(const Item& item, int depth) {
    // A tensor outside of a state dict: its name and its array.
    const auto& items = item.items;
    if (item.kind == Item::Tuple && items.size() == 2 && items[0]->kind == Item::Text &&
        items[1]->kind == Item::Array)
      return converted(*items[1], depth + 1);
    StateTree::List list;
    for (const ItemPtr& one : items) list.push_back(converted(*one, depth + 1));
    return StateTree(std::move(list));
  }

  int64_t converted_ = 0;
};

}  // namespace

StateTree parse_pickle(std::string_view file) { return PickleReader(file).whole(); }

StateTree load_pickle(const std::string& path) {
  const std::string content = read_file(path);
  try {
    return parse_pickle(content);
  } catch (const Error& error) {
    fail(error.kind(), "\"{}\" cannot be loaded: {}\nhint: {}", path, error.text(), error.hint());
  }
}

}  // namespace oar
