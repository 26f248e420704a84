#include <bit>
#include <cstring>
#include <memory>
#include <optional>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/formats/json_reader.h"
#include "oar/formats/numpy_types.h"
#include "oar/formats/pickle.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

constexpr int kDeepest = 100;
constexpr int64_t kMostValues = int64_t{1} << 24;

// What a pickle builds on its stack. Containers are shared by reference until the end.
struct Item {
  enum Kind {
    None,
    Mark,
    Bool,
    Int,
    Word,
    Real,
    Text,
    Bytes,
    List,
    Tuple,
    Dict,
    Name,
    Type,
    Array
  };
  Kind kind = None;
  int64_t integer = 0;
  uint64_t word = 0;
  double real = 0;
  std::string_view bytes;                    // of the file
  std::string text;                          // of a text or a name, or bytes that were encoded
  std::vector<std::shared_ptr<Item>> items;  // of a dictionary: keys and values in turn
  std::optional<DType> dtype;
  Tensor array;
};
using ItemPtr = std::shared_ptr<Item>;

class PickleReader {
 public:
  explicit PickleReader(std::string_view file) : file_(file) {}
  // Containers may hold themselves, or be nested without limit: they are taken apart one by one.
  ~PickleReader() {
    for (const ItemPtr& item : all_) item->items.clear();
  }
  PickleReader(const PickleReader&) = delete;
  PickleReader& operator=(const PickleReader&) = delete;

  StateTree whole() {
    while (true) {
      const auto code = static_cast<unsigned char>(next(1)[0]);
      if (code == '.') break;
      step(code);
    }
    return converted(*pop(), 0);
  }

 private:
  [[noreturn]] void damaged(std::string_view what) const {
    fail(ErrorKind::InvalidArgument, "the pickle is damaged at byte {} of {}: {}.", at_,
         file_.size(), what);
  }
  [[noreturn]] void refused(std::string_view what) const {
    fail(
        ErrorKind::Unsupported,
        "the pickle has {}, which is not admitted.\nhint: Files of Paddle hold dictionaries, lists, numbers, text and arrays.",
        what);
  }

  // bytes ----------------------------------------------------------------------------------------

  std::string_view next(uint64_t count) {
    if (count > file_.size() - at_) damaged("it ends too early");
    const std::string_view taken = file_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    const size_t end = file_.find('\n', at_);
    if (end == std::string_view::npos) damaged("it ends within a name");
    const std::string_view taken = next(end - at_);
    at_ += 1;
    return taken;
  }

  // stack ----------------------------------------------------------------------------------------

  Item& push(Item::Kind kind) {
    if (++made_ > kMostValues) damaged("it has too many values");
    all_.push_back(std::make_shared<Item>());
    stack_.push_back(all_.back());
    stack_.back()->kind = kind;
    return *stack_.back();
  }
  ItemPtr pop() {
    if (stack_.empty() || stack_.back()->kind == Item::Mark) damaged("a value is missing");
    ItemPtr top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  Item& top() {
    if (stack_.empty()) damaged("a value is missing");
    return *stack_.back();
  }
  std::vector<ItemPtr> popped(size_t count) {
    std::vector<ItemPtr> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<ItemPtr> popped_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Item::Mark) --begin;
    if (begin == 0) damaged("a mark is missing");
    std::vector<ItemPtr> items(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }

  void push_text(std::string_view bytes) {
    if (!is_utf8(bytes)) damaged("a text is not UTF-8");
    push(Item::Text).text = bytes;
  }
  void push_integer(std::string_view bytes) {
    if (bytes.size() > 9) damaged("an integer is too large");
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), 8));
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    if (bytes.size() == 9) {
      if (bytes.back() != 0) damaged("an integer is too large");
      push(Item::Word).word = value;
      return;
    }
    if (negative && bytes.size() < 8) value |= ~uint64_t{0} << (8 * bytes.size());
    push(Item::Int).integer = static_cast<int64_t>(value);
  }
  void push_tuple(std::vector<ItemPtr> items) { push(Item::Tuple).items = std::move(items); }

  void remember(uint64_t place) {
    if (place > memo_.size() + 1000 || place > static_cast<uint64_t>(kMostValues))
      damaged("a place is out of range");
    top();
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = stack_.back();
  }
  void recall(uint64_t place) {
    if (place >= memo_.size() || !memo_[place]) damaged("a place is empty");
    stack_.push_back(memo_[place]);
  }

  void add(Item::Kind kind, std::vector<ItemPtr> items) {
    if (top().kind != kind) damaged("a container is missing");
    if (kind == Item::Dict && items.size() % 2 != 0) damaged("a value of a dictionary is missing");
    for (ItemPtr& item : items) top().items.push_back(std::move(item));
  }

  void push_name(std::string_view module, std::string_view name) {
    std::string full = std::string(module) + "." + std::string(name);
    if (full.starts_with("numpy._core.")) full.replace(0, 11, "numpy.core");
    static constexpr std::string_view known[] = {"numpy.ndarray",
                                                 "numpy.dtype",
                                                 "numpy.core.multiarray._reconstruct",
                                                 "numpy.core.multiarray.scalar",
                                                 "collections.OrderedDict",
                                                 "_codecs.encode"};
    for (const std::string_view one : known)
      if (full == one) {
        push(Item::Name).text = std::move(full);
        return;
      }
    refused(format("the name '{}'", full.substr(0, 80)));
  }

  // calls ----------------------------------------------------------------------------------------

  void call() {
    const ItemPtr arguments = pop(), function = pop();
    if (function->kind != Item::Name || arguments->kind != Item::Tuple)
      damaged("a call of something else");
    const auto& given = arguments->items;
    const std::string& name = function->text;
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

  void build() {
    const ItemPtr state = pop();
    Item& object = top();
    if (state->kind != Item::Tuple) damaged("a state of something else");
    if (object.kind == Item::Type) {
      if (state->items.size() > 1 && state->items[1]->text == ">")
        refused("numbers with their bytes in reverse order");
      return;
    }
    if (object.kind != Item::Array || state->items.size() < 4) damaged("a state of something else");
    const ItemPtr* parts = &state->items[state->items.size() - 4];
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

  // opcodes --------------------------------------------------------------------------------------

  void step(unsigned char code) {
    switch (code) {
      case 0x80:
        if (number<uint8_t>() > 5) refused("a newer protocol");
        break;
      case 0x95:
        number<uint64_t>();
        break;  // a frame
      case '(':
        push(Item::Mark);
        break;
      case '0':
        pop();
        break;
      case 'N':
        push(Item::None);
        break;
      case 0x88:
        push(Item::Bool).integer = 1;
        break;
      case 0x89:
        push(Item::Bool);
        break;
      case 'J':
        push(Item::Int).integer = number<int32_t>();
        break;
      case 'K':
        push(Item::Int).integer = number<uint8_t>();
        break;
      case 'M':
        push(Item::Int).integer = number<uint16_t>();
        break;
      case 0x8a:
        push_integer(next(number<uint8_t>()));
        break;
      case 'G':
        push(Item::Real).real = std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()));
        break;
      case 0x8c:
        push_text(next(number<uint8_t>()));
        break;
      case 'X':
        push_text(next(number<uint32_t>()));
        break;
      case 0x8d:
        push_text(next(number<uint64_t>()));
        break;
      case 'C':
        push(Item::Bytes).bytes = next(number<uint8_t>());
        break;
      case 'B':
        push(Item::Bytes).bytes = next(number<uint32_t>());
        break;
      case 0x8e:
        push(Item::Bytes).bytes = next(number<uint64_t>());
        break;
      case ']':
        push(Item::List);
        break;
      case 'a': {
        auto items = popped(1);
        add(Item::List, std::move(items));
        break;
      }
      case 'e': {
        auto items = popped_to_mark();
        add(Item::List, std::move(items));
        break;
      }
      case ')':
        push_tuple({});
        break;
      case 't':
        push_tuple(popped_to_mark());
        break;
      case 0x85:
        push_tuple(popped(1));
        break;
      case 0x86:
        push_tuple(popped(2));
        break;
      case 0x87:
        push_tuple(popped(3));
        break;
      case '}':
        push(Item::Dict);
        break;
      case 's': {
        auto items = popped(2);
        add(Item::Dict, std::move(items));
        break;
      }
      case 'u': {
        auto items = popped_to_mark();
        add(Item::Dict, std::move(items));
        break;
      }
      case 'q':
        remember(number<uint8_t>());
        break;
      case 'r':
        remember(number<uint32_t>());
        break;
      case 0x94:
        remember(memoized_++);
        break;
      case 'h':
        recall(number<uint8_t>());
        break;
      case 'j':
        recall(number<uint32_t>());
        break;
      case 'c': {
        const auto module = line();
        push_name(module, line());
        break;
      }
      case 0x93: {
        const auto names = popped(2);
        push_name(names[0]->text, names[1]->text);
        break;
      }
      case 'R':
        call();
        break;
      case 'b':
        build();
        break;
      default:
        refused(format("the instruction {}", static_cast<int>(code)));
    }
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

  std::string_view file_;
  size_t at_ = 0;
  std::vector<ItemPtr> all_, stack_, memo_;
  uint64_t memoized_ = 0;
  int64_t made_ = 0, converted_ = 0;
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
