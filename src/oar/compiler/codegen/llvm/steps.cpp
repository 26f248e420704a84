#include "oar/compiler/codegen/llvm/steps.h"

#include <limits>
#include <stdexcept>

namespace oar::codegen {

using fusion::Step;
using fusion::StepKind;
using llvm::Type;
using llvm::Value;

namespace {

[[noreturn]] void refuse(const Step& step) {
  throw std::runtime_error("there is no code for the function number " +
                           std::to_string(static_cast<int>(step.fn)) + " of " + name_of(step.type));
}

bool is_unsigned(DType type) { return type == DType::UInt8 || type == DType::Bool; }
bool is_real(DType type) { return type == DType::Float32 || type == DType::Float64; }

// The functions of functions.cpp, by their names there.
const char* function_name(ScalarFn fn) {
  switch (fn) {
      // clang-format off
    case ScalarFn::Exp: return "exp";
    case ScalarFn::Expm1: return "expm1";
    case ScalarFn::Log: return "log";
    case ScalarFn::Log1p: return "log1p";
    case ScalarFn::Log2: return "log2";
    case ScalarFn::Log10: return "log10";
    case ScalarFn::Sin: return "sin";
    case ScalarFn::Cos: return "cos";
    case ScalarFn::Tan: return "tan";
    case ScalarFn::Asin: return "asin";
    case ScalarFn::Acos: return "acos";
    case ScalarFn::Atan: return "atan";
    case ScalarFn::Sinh: return "sinh";
    case ScalarFn::Cosh: return "cosh";
    case ScalarFn::Tanh: return "tanh";
    case ScalarFn::Asinh: return "asinh";
    case ScalarFn::Acosh: return "acosh";
    case ScalarFn::Atanh: return "atanh";
    case ScalarFn::Erf: return "erf";
    case ScalarFn::Pow: return "pow";
    case ScalarFn::Hypot: return "hypot";
    case ScalarFn::Atan2: return "atan2";
    case ScalarFn::FloorDivide: return "floor_divide";
    case ScalarFn::Modulo: return "modulo";
    default: return nullptr;
      // clang-format on
  }
}

}  // namespace

// ---- types -----------------------------------------------------------------------------------------

Type* Steps::type_of(DType type) {
  switch (type) {
    case DType::Float32:
      return b_.getFloatTy();
    case DType::Float64:
      return b_.getDoubleTy();
    case DType::Bool:
      return b_.getInt1Ty();
    default:
      return b_.getIntNTy(static_cast<unsigned>(bits_of(type)));
  }
}

Type* Steps::stored_type(DType type) {
  switch (type) {
    case DType::Bool:
      return b_.getInt8Ty();
    case DType::Float16:
      return b_.getHalfTy();
    case DType::BFloat16:
      return b_.getInt16Ty();
    default:
      return type_of(type);
  }
}

Value* Steps::widened(Value* element, DType stored) {
  switch (stored) {
    case DType::Bool:
      return b_.CreateICmpNE(element, b_.getInt8(0));
    case DType::Float16:
      return b_.CreateFPExt(element, b_.getFloatTy());
    case DType::BFloat16:
      return call("oar_from_brain", b_.getFloatTy(), {element});
    default:
      return element;
  }
}

Value* Steps::narrowed(Value* value, DType type, DType stored) {
  switch (stored) {
    case DType::Bool:
      return b_.CreateZExt(cast(value, type, DType::Bool), b_.getInt8Ty());
    case DType::Float16:
      return b_.CreateFPTrunc(cast(value, type, DType::Float32), b_.getHalfTy());
    case DType::BFloat16:
      return call("oar_to_brain", b_.getInt16Ty(), {cast(value, type, DType::Float32)});
    default:
      return cast(value, type, stored);
  }
}

Value* Steps::number(const Step& step) {
  if (is_real(step.type)) return llvm::ConstantFP::get(type_of(step.type), step.number);
  return llvm::ConstantInt::get(type_of(step.type), static_cast<uint64_t>(step.integer), true);
}

Value* Steps::cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  Type* const type = type_of(to);
  if (to == DType::Bool)
    return is_real(from) ? b_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0))
                         : b_.CreateICmpNE(value, llvm::ConstantInt::get(value->getType(), 0));
  if (is_real(from) && is_real(to)) return b_.CreateFPCast(value, type);
  if (is_real(to))
    return is_unsigned(from) ? b_.CreateUIToFP(value, type) : b_.CreateSIToFP(value, type);
  if (!is_real(from)) return b_.CreateIntCast(value, type, !is_unsigned(from));
  // As the processor does it for 32 or 64 bits; narrower ones wrap. Frozen, so that no other conversion takes its place.
  const unsigned bits = type->getIntegerBitWidth();
  Type* const wide =
      bits > 32 || (bits == 32 && is_unsigned(to)) ? b_.getInt64Ty() : b_.getInt32Ty();
  return b_.CreateIntCast(b_.CreateFreeze(b_.CreateFPToSI(value, wide)), type, true);
}

Value* Steps::rounded(Value* value, DType to) {
  return widened(narrowed(value, DType::Float32, to), to);
}

// ---- calls -----------------------------------------------------------------------------------------

Value* Steps::call(const std::string& name, Type* result, std::initializer_list<Value*> arguments) {
  std::vector<Type*> types;
  for (Value* v : arguments) types.push_back(v->getType());
  const llvm::FunctionCallee callee =
      module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  return b_.CreateCall(callee, llvm::ArrayRef<Value*>(arguments.begin(), arguments.size()));
}

Value* Steps::function(const char* name, DType type, Value* const* operands, int count) {
  const std::string full = std::string("oar_") + name + (type == DType::Float32 ? "_f" : "_d");
  if (count == 1) return call(full, type_of(type), {operands[0]});
  return call(full, type_of(type), {operands[0], operands[1]});
}

Value* Steps::intrinsic(llvm::Intrinsic::ID id, std::initializer_list<Value*> arguments) {
  const llvm::ArrayRef<Value*> list(arguments.begin(), arguments.size());
  return b_.CreateIntrinsic(id, {(*arguments.begin())->getType()}, list);
}

Value* Steps::hard(const Step& step, Value* const* operands) {
  if (!has_hard_arguments(step)) return nullptr;
  return call(std::string("oar_") + function_name(step.fn) + "_hard_f", b_.getInt1Ty(),
              {operands[0]});
}

// ---- functions -------------------------------------------------------------------------------------

Value* Steps::apply(const Step& step, Value* const* operands, bool slow) {
  const ScalarFn fn = step.fn;
  if (fn == ScalarFn::Select) return b_.CreateSelect(operands[0], operands[1], operands[2]);
  const DType type = kernel_.steps[step.operands[0]].type;
  if (fn >= ScalarFn::Less && fn <= ScalarFn::NotEqual)
    return compared(fn, type, operands[0], operands[1]);
  if (is_real(type)) return apply_real(step, operands, slow);
  return type == DType::Bool ? apply_truth(step, operands) : apply_whole(step, operands);
}

Value* Steps::compared(ScalarFn fn, DType type, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  const bool real = is_real(type), sign = !is_unsigned(type);
  const auto choose = [&](P of_reals, P of_signed, P of_unsigned) {
    return b_.CreateCmp(real ? of_reals : sign ? of_signed : of_unsigned, a, b);
  };
  switch (fn) {
    case ScalarFn::Less:
      return choose(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
    case ScalarFn::LessEqual:
      return choose(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
    case ScalarFn::Greater:
      return choose(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
    case ScalarFn::GreaterEqual:
      return choose(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    case ScalarFn::Equal:
      return choose(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
    default:
      return choose(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
  }
}

// Which of two equal zeros it is, is as in the eager kernels: those with a limit keep the element, those of two tensors take the
// second one.
Value* Steps::larger(Value* a, Value* b, bool b_is_number, bool smaller) {
  if (b_is_number) {
    Value* const beyond = smaller ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
    Value* const made = b_.CreateSelect(beyond, b, a);
    return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, made);
  }
  Value* const first = smaller ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b);
  Value* const made = b_.CreateSelect(first, a, b);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, made);
}

Value* Steps::apply_real(const Step& step, Value* const* operands, bool slow) {
  namespace I = llvm::Intrinsic;
  Value *const a = operands[0], *const b = oar::arity_of(step.fn) > 1 ? operands[1] : nullptr;
  Type* const type = a->getType();
  const auto real = [&](double v) { return llvm::ConstantFP::get(type, v); };
  const double infinity = std::numeric_limits<double>::infinity();
  const auto is_number = [&](int k) {
    return kernel_.steps[step.operands[k]].kind == StepKind::Number;
  };
  switch (step.fn) {
    case ScalarFn::Add:
      return b_.CreateFAdd(a, b);
    case ScalarFn::Subtract:
      return b_.CreateFSub(a, b);
    case ScalarFn::Multiply:
      return b_.CreateFMul(a, b);
    case ScalarFn::Divide:
      if (step.loose && !step.of_row && kernel_.steps[step.operands[1]].of_row)
        return b_.CreateFMul(a, b_.CreateFDiv(real(1), b));  // one division for all of a row
      return b_.CreateFDiv(a, b);
    case ScalarFn::Negate:
      return b_.CreateFNeg(a);
    case ScalarFn::Abs:
      return intrinsic(I::fabs, {a});
    case ScalarFn::Sign: {
      Value* const below = b_.CreateSelect(b_.CreateFCmpOLT(a, real(0)), real(-1), a);
      return b_.CreateSelect(b_.CreateFCmpOGT(a, real(0)), real(1), below);
    }
    case ScalarFn::Min:
      return larger(a, b, is_number(1), true);
    case ScalarFn::Max:
      return larger(a, b, is_number(1), false);
    case ScalarFn::FMin:
      return b_.CreateSelect(b_.CreateFCmpUNO(b, b), a,
                             b_.CreateSelect(b_.CreateFCmpOLE(a, b), a, b));
    case ScalarFn::FMax:
      return b_.CreateSelect(b_.CreateFCmpUNO(b, b), a,
                             b_.CreateSelect(b_.CreateFCmpOGE(a, b), a, b));
    case ScalarFn::Floor:
      return intrinsic(I::floor, {a});
    case ScalarFn::Ceil:
      return intrinsic(I::ceil, {a});
    case ScalarFn::Trunc:
      return intrinsic(I::trunc, {a});
    case ScalarFn::Round:
      return intrinsic(I::roundeven, {a});
    case ScalarFn::Sqrt:
      return intrinsic(I::sqrt, {a});
    case ScalarFn::CopySign:
      return intrinsic(I::copysign, {a, b});
    case ScalarFn::SignBit: {
      Type* const word = b_.getIntNTy(type->getScalarSizeInBits());
      return b_.CreateICmpSLT(b_.CreateBitCast(a, word), llvm::ConstantInt::get(word, 0));
    }
    case ScalarFn::IsNan:
      return b_.CreateFCmpUNO(a, a);
    case ScalarFn::IsInf:
      return b_.CreateFCmpOEQ(intrinsic(I::fabs, {a}), real(infinity));
    case ScalarFn::IsFinite:
      return b_.CreateFCmpOLT(intrinsic(I::fabs, {a}), real(infinity));
    default:
      break;
  }
  const char* const name = function_name(step.fn);
  if (!name) refuse(step);
  Value* const fast = function(name, step.type, operands, oar::arity_of(step.fn));
  if (!slow || !has_hard_arguments(step)) return fast;
  Value* const exact = call(std::string("oar_") + name + "_slow_f", type, {a});
  return b_.CreateSelect(hard(step, operands), exact, fast);
}

// Beyond the bits of the type, all bits are shifted out.
Value* Steps::shifted(ScalarFn fn, DType type, Value* a, Value* b) {
  const auto bits = static_cast<uint64_t>(bits_of(type));
  const auto word = [&](uint64_t v) { return llvm::ConstantInt::get(a->getType(), v); };
  Value* const out = b_.CreateICmpUGE(b, word(bits));
  Value* const most = b_.CreateSelect(out, word(bits - 1), b);
  if (fn == ScalarFn::ShiftRight && !is_unsigned(type)) return b_.CreateAShr(a, most);
  Value* const made = fn == ScalarFn::ShiftLeft ? b_.CreateShl(a, most) : b_.CreateLShr(a, most);
  return b_.CreateSelect(out, word(0), made);
}

Value* Steps::apply_whole(const Step& step, Value* const* operands) {
  Value *const a = operands[0], *const b = oar::arity_of(step.fn) > 1 ? operands[1] : nullptr;
  const DType type = kernel_.steps[step.operands[0]].type;
  Value* const zero = llvm::ConstantInt::get(a->getType(), 0);
  const auto less = [&](Value* x, Value* y) { return compared(ScalarFn::Less, type, x, y); };
  switch (step.fn) {
    case ScalarFn::Add:
      return b_.CreateAdd(a, b);
    case ScalarFn::Subtract:
      return b_.CreateSub(a, b);
    case ScalarFn::Multiply:
      return b_.CreateMul(a, b);
    case ScalarFn::Negate:
      return b_.CreateNeg(a);
    case ScalarFn::Abs:
      return b_.CreateSelect(less(a, zero), b_.CreateNeg(a), a);
    case ScalarFn::Sign: {
      Value* const up = b_.CreateZExt(less(zero, a), a->getType());
      return b_.CreateSub(up, b_.CreateZExt(less(a, zero), a->getType()));
    }
    case ScalarFn::Min:
    case ScalarFn::FMin:
      return b_.CreateSelect(less(b, a), b, a);
    case ScalarFn::Max:
    case ScalarFn::FMax:
      return b_.CreateSelect(less(a, b), b, a);
    case ScalarFn::Floor:
    case ScalarFn::Ceil:
    case ScalarFn::Round:
    case ScalarFn::Trunc:
      return a;
    case ScalarFn::BitAnd:
      return b_.CreateAnd(a, b);
    case ScalarFn::BitOr:
      return b_.CreateOr(a, b);
    case ScalarFn::BitXor:
      return b_.CreateXor(a, b);
    case ScalarFn::BitNot:
      return b_.CreateNot(a);
    case ScalarFn::ShiftLeft:
    case ScalarFn::ShiftRight:
    case ScalarFn::ShiftRightBits:
      return shifted(step.fn, type, a, b);
    default:
      refuse(step);
  }
}

Value* Steps::apply_truth(const Step& step, Value* const* operands) {
  Value *const a = operands[0], *const b = oar::arity_of(step.fn) > 1 ? operands[1] : nullptr;
  switch (step.fn) {
    case ScalarFn::And:
    case ScalarFn::BitAnd:
    case ScalarFn::Multiply:
    case ScalarFn::Min:
    case ScalarFn::FMin:
      return b_.CreateAnd(a, b);
    case ScalarFn::Or:
    case ScalarFn::BitOr:
    case ScalarFn::Add:
    case ScalarFn::Max:
    case ScalarFn::FMax:
      return b_.CreateOr(a, b);
    case ScalarFn::BitXor:
      return b_.CreateXor(a, b);
    case ScalarFn::Not:
    case ScalarFn::BitNot:
      return b_.CreateNot(a);
    default:
      refuse(step);
  }
}

// ---- folds -----------------------------------------------------------------------------------------

Value* Steps::neutral(const Step& fold) {
  Type* const type = type_of(fold.type);
  const bool product = fold.fn == ScalarFn::Multiply, least = fold.fn == ScalarFn::Min;
  if (is_real(fold.type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double start = fold.fn == ScalarFn::Add ? 0 : product ? 1 : least ? infinity : -infinity;
    return llvm::ConstantFP::get(type, start);
  }
  const auto bits = static_cast<unsigned>(type->getScalarSizeInBits());
  if (fold.fn == ScalarFn::Add) return llvm::ConstantInt::get(type, 0);
  if (product) return llvm::ConstantInt::get(type, 1);
  if (is_unsigned(fold.type))
    return llvm::ConstantInt::get(
        type, least ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getMinValue(bits));
  return llvm::ConstantInt::get(
      type, least ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getSignedMinValue(bits));
}

Value* Steps::joined(const Step& fold, Value* sum, Value* value) {
  if (is_real(fold.type)) {
    // In lanes that are joined at the end, which is the same for all rows of a length.
    llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
    llvm::FastMathFlags any_order;
    any_order.setAllowReassoc();
    b_.setFastMathFlags(any_order);
    if (fold.fn == ScalarFn::Add) return b_.CreateFAdd(sum, value);
    if (fold.fn == ScalarFn::Multiply) return b_.CreateFMul(sum, value);
    b_.clearFastMathFlags();
    return intrinsic(fold.fn == ScalarFn::Min ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum,
                     {sum, value});
  }
  if (fold.type == DType::Bool)
    return fold.fn == ScalarFn::Min ? b_.CreateAnd(sum, value) : b_.CreateOr(sum, value);
  if (fold.fn == ScalarFn::Add) return b_.CreateAdd(sum, value);
  if (fold.fn == ScalarFn::Multiply) return b_.CreateMul(sum, value);
  Value* const first = fold.fn == ScalarFn::Min ? compared(ScalarFn::Less, fold.type, sum, value)
                                                : compared(ScalarFn::Less, fold.type, value, sum);
  return b_.CreateSelect(first, sum, value);
}

}  // namespace oar::codegen
