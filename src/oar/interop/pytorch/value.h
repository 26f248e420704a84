// What flows through a program of PyTorch: tensors, numbers, texts, and containers of them.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::pytorch {

struct Box;

struct Value {
  enum Kind : uint8_t { None, Bool, Int, Float, Text, Tensor, List, Tuple, Dict, Object, Name };

  Kind kind = None;
  bool known = false;   // a tensor that depends on no input
  int64_t integer = 0;  // of flags, too
  double number = 0;    // of Float
  std::string text;     // of Text; of Name, a function or a class of the program
  oar::Tensor tensor;   // of Tensor
  Box* box = nullptr;   // of containers and objects, which are shared

  Value() = default;
  Value(oar::Tensor t) : kind(Tensor), tensor(std::move(t)) {}
  static Value flag(bool value);
  static Value of(int64_t value);
  static Value of(double value);
  static Value of(std::string value);

  bool is_none() const { return kind == None; }
  bool is_tensor() const { return kind == Tensor; }
  bool is_number() const { return kind == Bool || kind == Int || kind == Float; }
  bool is_list() const { return kind == List || kind == Tuple; }
  double as_number() const { return kind == Float ? number : static_cast<double>(integer); }
  const char* kind_name() const;
};

// The content of a list, a tuple, a dictionary (with the keys apart) or an object (with named attributes).
struct Box {
  std::vector<Value> items, keys;
  std::string type;   // of an object, and of a tuple with named parts
  bool kept = false;  // it is part of the module, not of one run
  std::map<std::string, Value, std::less<>> attributes;
};

// Owns boxes, which may hold each other in circles.
class Heap {
 public:
  Value make(Value::Kind kind, std::vector<Value> items = {});
  // Counts what is added to a list, so that no program fills the memory.
  void grow(size_t items);
  // Called before a box is changed: an error if it is kept, unless changes are allowed. `what` changes it.
  void check_change(const Box& box, std::string_view what);
  bool may_change_kept = false;
  bool changed_kept = false;

 private:
  std::deque<Box> boxes_;
  size_t items_ = 0;
};

// What a value holds, of containers in it too, marked as depending on no input.
void mark_known(Value& value, int depth = 0);

}  // namespace oar::pytorch
