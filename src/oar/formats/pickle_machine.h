// The machine that pickles are programs for: a stack of plain values. Which names it knows, and what a call of them makes, is up to
// the format; nothing else can be called.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oar/base/error.h"
#include "oar/tensor/tensor.h"

namespace oar {

// What a pickle builds on its stack. Containers are shared by reference until the end.
struct PickleItem {
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
    Storage,
    Array,
    Object  // `text` is its class, the item its state
  };
  Kind kind = None;
  int64_t integer = 0;
  uint64_t word = 0;
  double real = 0;
  std::string_view bytes;  // of the file
  std::string text;        // of a text or a name, or bytes that were encoded
  std::vector<std::shared_ptr<PickleItem>> items;  // of a dictionary: keys and values in turn
  std::optional<DType> dtype;
  Tensor array;
};
using PickleItemPtr = std::shared_ptr<PickleItem>;

class PickleMachine {
 public:
  // `admitted` says what files of the format hold, for errors.
  PickleMachine(std::string_view file, const char* admitted) : file_(file), admitted_(admitted) {}
  virtual ~PickleMachine();
  PickleMachine(const PickleMachine&) = delete;
  PickleMachine& operator=(const PickleMachine&) = delete;

 protected:
  using Item = PickleItem;
  using ItemPtr = PickleItemPtr;

  static constexpr int kDeepest = 100;
  static constexpr int64_t kMostValues = int64_t{1} << 24;

  // Runs the program; what is on the stack at its end.
  ItemPtr run();

  virtual bool knows(std::string_view name) const = 0;
  virtual void call(const std::string& name, const std::vector<ItemPtr>& arguments) = 0;
  virtual void build(const Item& state, Item& object) = 0;
  // A new object of a class.
  virtual void create(const std::string& name, const std::vector<ItemPtr>& arguments);
  // A reference to something outside of the pickle.
  virtual void refer(const Item& id);

  [[noreturn]] void damaged(std::string_view what) const;
  [[noreturn]] void refused(std::string_view what) const;

  Item& push(Item::Kind kind);
  // The same value once more.
  void again(const ItemPtr& item) { stack_.push_back(item); }

 private:
  std::string_view next(uint64_t count);
  template <class T>
  T number() {
    T value;
    const std::string_view bytes = next(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view line();

  ItemPtr pop();
  Item& top();
  std::vector<ItemPtr> popped(size_t count);
  std::vector<ItemPtr> popped_to_mark();
  void push_text(std::string_view bytes);
  void push_integer(std::string_view bytes);
  void push_tuple(std::vector<ItemPtr> items) { push(Item::Tuple).items = std::move(items); }
  void remember(uint64_t place);
  void recall(uint64_t place);
  void add(Item::Kind kind, std::vector<ItemPtr> items);
  void push_name(std::string_view module, std::string_view name);
  std::pair<std::string, std::vector<ItemPtr>> popped_call();
  void step(unsigned char code);

  std::string_view file_;
  const char* admitted_;
  size_t at_ = 0;
  std::vector<ItemPtr> all_, stack_, memo_;
  uint64_t memoized_ = 0;
  int64_t made_ = 0;
};

}  // namespace oar
