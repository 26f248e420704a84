#include "oar/formats/pickle_machine.h"

#include <bit>

#include "oar/formats/json_reader.h"

namespace oar {

// Containers may hold themselves, or be nested without limit: they are taken apart one by one.
PickleMachine::~PickleMachine() {
  for (const ItemPtr& item : all_) item->items.clear();
}

PickleItemPtr PickleMachine::run() {
  while (true) {
    const auto code = static_cast<unsigned char>(next(1)[0]);
    if (code == '.') break;
    step(code);
  }
  return pop();
}

void PickleMachine::refer(const Item&) { refused("a reference to something outside of it"); }

void PickleMachine::damaged(std::string_view what) const {
  fail(ErrorKind::InvalidArgument, "the pickle is damaged at byte {} of {}: {}.", at_, file_.size(),
       what);
}

void PickleMachine::refused(std::string_view what) const {
  fail(ErrorKind::Unsupported, "the pickle has {}, which is not admitted.\nhint: {}", what,
       admitted_);
}

void PickleMachine::create(const std::string& name, const std::vector<ItemPtr>&) {
  refused(format("an object of the class '{}'", name.substr(0, 80)));
}

// bytes ----------------------------------------------------------------------------------------

std::string_view PickleMachine::next(uint64_t count) {
  if (count > file_.size() - at_) damaged("it ends too early");
  const std::string_view taken = file_.substr(at_, count);
  at_ += count;
  return taken;
}

std::string_view PickleMachine::line() {
  const size_t end = file_.find('\n', at_);
  if (end == std::string_view::npos) damaged("it ends within a name");
  const std::string_view taken = next(end - at_);
  at_ += 1;
  return taken;
}

// stack ----------------------------------------------------------------------------------------

PickleItem& PickleMachine::push(Item::Kind kind) {
  if (++made_ > kMostValues) damaged("it has too many values");
  all_.push_back(std::make_shared<Item>());
  stack_.push_back(all_.back());
  stack_.back()->kind = kind;
  return *stack_.back();
}

PickleItemPtr PickleMachine::pop() {
  if (stack_.empty() || stack_.back()->kind == Item::Mark) damaged("a value is missing");
  ItemPtr top = std::move(stack_.back());
  stack_.pop_back();
  return top;
}

PickleItem& PickleMachine::top() {
  if (stack_.empty()) damaged("a value is missing");
  return *stack_.back();
}

std::vector<PickleItemPtr> PickleMachine::popped(size_t count) {
  std::vector<ItemPtr> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}

std::vector<PickleItemPtr> PickleMachine::popped_to_mark() {
  size_t begin = stack_.size();
  while (begin > 0 && stack_[begin - 1]->kind != Item::Mark) --begin;
  if (begin == 0) damaged("a mark is missing");
  std::vector<ItemPtr> items(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
  stack_.resize(begin - 1);
  return items;
}

void PickleMachine::push_text(std::string_view bytes) {
  if (!is_utf8(bytes)) damaged("a text is not UTF-8");
  push(Item::Text).text = bytes;
}

void PickleMachine::push_integer(std::string_view bytes) {
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

void PickleMachine::remember(uint64_t place) {
  if (place > memo_.size() + 1000 || place > static_cast<uint64_t>(kMostValues))
    damaged("a place is out of range");
  top();
  if (place >= memo_.size()) memo_.resize(place + 1);
  memo_[place] = stack_.back();
}

void PickleMachine::recall(uint64_t place) {
  if (place >= memo_.size() || !memo_[place]) damaged("a place is empty");
  stack_.push_back(memo_[place]);
}

void PickleMachine::add(Item::Kind kind, std::vector<ItemPtr> items) {
  if (top().kind != kind) damaged("a container is missing");
  if (kind == Item::Dict && items.size() % 2 != 0) damaged("a value of a dictionary is missing");
  for (ItemPtr& item : items) top().items.push_back(std::move(item));
}

void PickleMachine::push_name(std::string_view module, std::string_view name) {
  std::string full = std::string(module) + "." + std::string(name);
  if (full.starts_with("numpy._core.")) full.replace(0, 11, "numpy.core");
  if (!knows(full)) refused(format("the name '{}'", full.substr(0, 80)));
  push(Item::Name).text = std::move(full);
}

// What is called, and with which arguments.
std::pair<std::string, std::vector<PickleItemPtr>> PickleMachine::popped_call() {
  const ItemPtr arguments = pop(), function = pop();
  if (function->kind != Item::Name || arguments->kind != Item::Tuple)
    damaged("a call of something else");
  return {function->text, arguments->items};
}

void PickleMachine::step(unsigned char code) {
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
    case 'R': {
      const auto [name, arguments] = popped_call();
      call(name, arguments);
      break;
    }
    case 0x81: {
      const auto [name, arguments] = popped_call();
      create(name, arguments);
      break;
    }
    case 'Q':
      refer(*pop());
      break;
    case 'b': {
      const ItemPtr state = pop();
      build(*state, top());
      break;
    }
    default:
      refused(format("the instruction {}", static_cast<int>(code)));
  }
}

}  // namespace oar
