// The loops of a kernel. They are written for one element at a time; metadata tells LLVM's vectoriser that elements are
// independent, so it needs no checks at run time.
#include "oar/compiler/codegen/llvm/emit.h"

#include <algorithm>

#include "oar/compiler/codegen/llvm/steps.h"

namespace oar::codegen {

using fusion::Kernel;
using fusion::Lie;
using fusion::Port;
using fusion::Step;
using fusion::StepKind;
using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

namespace {

class Emitter {
 public:
  Emitter(const Kernel& kernel, llvm::Module& module, const std::string& name)
      : kernel_(kernel),
        context_(module.getContext()),
        b_(context_),
        steps_(kernel, module, b_),
        kept_(kept_steps(kernel)),
        computed_(computed_in(kernel, kept_)),
        row_values_(kernel.steps.size(), nullptr) {
    llvm::Type *const pointer = b_.getPtrTy(), *const word = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(
        b_.getVoidTy(), {pointer, pointer, pointer, word, word, pointer}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    count_ = function_->getArg(4);
    room_ = function_->getArg(5);
    for (size_t i = 0, next = 0; i < kept_.size(); ++i) places_.push_back(kept_[i] ? next++ : 0);
  }

  llvm::Function* run() {
    b_.SetInsertPoint(block("entry"));
    const size_t ports = kernel_.inputs.size() + kernel_.outputs.size();
    for (size_t k = 0; k < ports; ++k) {
      starts_.push_back(entry_of(0, k, b_.getPtrTy()));
      across_.push_back(entry_of(1, k, b_.getInt64Ty()));
      along_.push_back(entry_of(2, k, b_.getInt64Ty()));
    }
    Value* const rows = function_->getArg(3);
    BasicBlock *const before = b_.GetInsertBlock(), *const row = block("row"),
                      *const end = block("end");
    b_.CreateBr(row);
    b_.SetInsertPoint(row);
    PHINode* const r = b_.CreatePHI(b_.getInt64Ty(), 2);
    r->addIncoming(b_.getInt64(0), before);
    for (size_t k = 0; k < ports; ++k)
      at_.push_back(b_.CreateGEP(b_.getInt8Ty(), starts_[k], b_.CreateMul(r, across_[k])));
    emit_row();
    Value* const next = b_.CreateAdd(r, b_.getInt64(1));
    r->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, rows), row, end);
    b_.SetInsertPoint(end);
    b_.CreateRetVoid();
    return function_;
  }

 private:
  // A fold of the loop that is being written.
  struct Sum {
    size_t step;
    PHINode* phi;
    Value* next;
  };
  struct Loop {
    size_t number = 0;
    bool slow = false;
    Value* index = nullptr;
    llvm::MDNode* group = nullptr;
    std::vector<Value*> values;
    std::vector<Sum> sums;
    Value* hard = nullptr;  // of this element
  };

  BasicBlock* block(const char* name) { return BasicBlock::Create(context_, name, function_); }
  Value* entry_of(unsigned argument, size_t k, llvm::Type* type) {
    return b_.CreateLoad(type,
                         b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(argument), k));
  }
  size_t loop_count() const { return computed_.empty() ? 1 : computed_[0].size(); }
  size_t port_of_result(size_t k) const { return kernel_.inputs.size() + k; }
  // The loop that stores a result; the last for one that is the same for all of a row.
  size_t loop_of_result(size_t k) const {
    const Step& step = kernel_.steps[kernel_.results[k]];
    return step.of_row ? loop_count() - 1 : step.loop;
  }

  void emit_row() {
    for (size_t loop = 0; loop < loop_count(); ++loop) {
      for (size_t i = 0; i < kernel_.steps.size(); ++i)
        if (const Step& s = kernel_.steps[i];
            s.of_row && s.kind != StepKind::Fold && s.loop == loop)
          row_values_[i] = row_value(i);
      if (has_work(loop)) emit_loops(loop);
    }
    for (size_t k = 0; k < kernel_.outputs.size(); ++k)
      if (kernel_.outputs[k].lie == Lie::Single)
        store(k, row_values_[kernel_.results[k]], at_[port_of_result(k)]);
  }

  bool has_work(size_t loop) const {
    for (size_t i = 0; i < kernel_.steps.size(); ++i)
      if (kernel_.steps[i].kind == StepKind::Fold && kernel_.steps[i].loop == loop + 1) return true;
    for (size_t k = 0; k < kernel_.outputs.size(); ++k)
      if (kernel_.outputs[k].lie != Lie::Single && loop_of_result(k) == loop) return true;
    return false;
  }

  Value* row_value(size_t i) {
    const Step& step = kernel_.steps[i];
    if (step.kind == StepKind::Load) return load(step, at_[step.port]);
    if (step.kind == StepKind::Count) return b_.CreateSIToFP(count_, steps_.type_of(step.type));
    return computed(step, row_values_, true);
  }

  Value* computed(const Step& step, const std::vector<Value*>& values, bool slow) {
    Value* operands[3] = {};
    for (int k = 0; k < arity_of(step); ++k) operands[k] = values[step.operands[k]];
    switch (step.kind) {
      case StepKind::Number:
        return steps_.number(step);
      case StepKind::Cast:
        return steps_.cast(operands[0], kernel_.steps[step.operands[0]].type, step.type);
      case StepKind::Round:
        return steps_.rounded(operands[0], step.rounded);
      default:
        return steps_.apply(step, operands, slow);
    }
  }

  Value* load(const Step& step, Value* at) {
    const DType stored = kernel_.inputs[step.port].dtype;
    return steps_.widened(
        marked(b_.CreateAlignedLoad(steps_.stored_type(stored), at, llvm::Align(size_of(stored)))),
        stored);
  }
  void store(size_t k, Value* value, Value* at) {
    const Port& port = kernel_.outputs[k];
    const DType type = kernel_.steps[kernel_.results[k]].type;
    const llvm::Align align(size_of(port.dtype));
    if (port.is_total()) {
      const Step join{.kind = StepKind::Fold, .fn = port.joins, .type = type};
      Value* const before = marked(b_.CreateAlignedLoad(steps_.stored_type(port.dtype), at, align));
      value = steps_.joined(join, steps_.widened(before, port.dtype), value);
    }
    marked(b_.CreateAlignedStore(steps_.narrowed(value, type, port.dtype), at, align));
  }
  template <class Access>
  Access* marked(Access* access) {
    if (group_) access->setMetadata(llvm::LLVMContext::MD_access_group, group_);
    return access;
  }

  Value* element(size_t port, Lie lie, DType dtype, Value* index) {
    if (lie == Lie::Single) return at_[port];
    Value* const step =
        lie == Lie::Dense ? static_cast<Value*>(b_.getInt64(static_cast<uint64_t>(size_of(dtype))))
                          : along_[port];
    return b_.CreateGEP(b_.getInt8Ty(), at_[port], b_.CreateMul(index, step));
  }
  Value* place_in_room(size_t i, Value* index) {
    Value* const start = b_.CreateMul(count_, b_.getInt64(8 * places_[i]));
    Value* const offset =
        b_.CreateMul(index, b_.getInt64(static_cast<uint64_t>(size_of(kernel_.steps[i].type))));
    return b_.CreateGEP(b_.getInt8Ty(), room_, b_.CreateAdd(start, offset));
  }

  // The loop that computes a step that is kept.
  size_t first_loop(size_t step) const {
    const std::vector<bool>& loops = computed_[step];
    return static_cast<size_t>(std::find(loops.begin(), loops.end(), true) - loops.begin());
  }

  // One loop over the row; where it met hard arguments, it runs once more.
  void emit_loops(size_t number) {
    Loop fast = emit_loop(number, false);
    if (!fast.hard) return take_sums(fast);
    BasicBlock *const from = b_.GetInsertBlock(), *const again = block("again"),
                      *const on = block("on");
    b_.CreateCondBr(b_.CreateICmpNE(fast.hard, b_.getInt32(0)), again, on);
    b_.SetInsertPoint(again);
    Loop slow = emit_loop(number, true);
    BasicBlock* const end = b_.GetInsertBlock();
    b_.CreateBr(on);
    b_.SetInsertPoint(on);
    for (size_t k = 0; k < fast.sums.size(); ++k) {
      PHINode* const either = b_.CreatePHI(fast.sums[k].next->getType(), 2);
      either->addIncoming(fast.sums[k].next, from);
      either->addIncoming(slow.sums[k].next, end);
      fast.sums[k].next = either;
    }
    take_sums(fast);
  }
  void take_sums(const Loop& loop) {
    for (const Sum& sum : loop.sums) row_values_[sum.step] = sum.next;
  }

  Loop emit_loop(size_t number, bool slow) {
    Loop loop{.number = number, .slow = slow, .values = row_values_};
    group_ = llvm::MDNode::getDistinct(context_, {});
    BasicBlock *const before = b_.GetInsertBlock(), *const body = block("element"),
                      *const after = block("done");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    PHINode* const i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(b_.getInt64(0), before);
    loop.index = i;
    for (size_t s = 0; s < kernel_.steps.size(); ++s) {
      const Step& step = kernel_.steps[s];
      if (step.kind != StepKind::Fold || step.loop != number + 1) continue;
      PHINode* const phi = b_.CreatePHI(steps_.type_of(step.type), 2);
      phi->addIncoming(steps_.neutral(step), before);
      loop.sums.push_back({s, phi, nullptr});
    }
    PHINode* const hard = b_.CreatePHI(b_.getInt32Ty(), 2);
    hard->addIncoming(b_.getInt32(0), before);
    emit_element(loop);
    Value* const next = b_.CreateAdd(i, b_.getInt64(1), "", true, true);
    i->addIncoming(next, body);
    for (Sum& sum : loop.sums) sum.phi->addIncoming(sum.next, body);
    if (loop.hard) {
      Value* const any = b_.CreateOr(hard, b_.CreateZExt(loop.hard, b_.getInt32Ty()));
      hard->addIncoming(any, body);
      loop.hard = any;
    } else {
      hard->eraseFromParent();
    }
    llvm::BranchInst* const back = b_.CreateCondBr(b_.CreateICmpSLT(next, count_), body, after);
    back->setMetadata(llvm::LLVMContext::MD_loop, loop_properties(!slow));
    group_ = nullptr;
    b_.SetInsertPoint(after);
    return loop;
  }

  void emit_element(Loop& loop) {
    for (size_t s = 0; s < kernel_.steps.size(); ++s) {
      const Step& step = kernel_.steps[s];
      if (step.of_row || !computed_[s][loop.number]) continue;
      if (kept_[s] && first_loop(s) < loop.number) {
        llvm::Type* const type = steps_.stored_type(step.type);
        Value* const read = marked(b_.CreateLoad(type, place_in_room(s, loop.index)));
        loop.values[s] = steps_.widened(read, step.type);
        continue;
      }
      if (step.kind == StepKind::Load) {
        const Port& port = kernel_.inputs[step.port];
        loop.values[s] = load(step, element(step.port, port.lie, port.dtype, loop.index));
      } else {
        if (!loop.slow) note_hard(loop, step);
        loop.values[s] = computed(step, loop.values, loop.slow);
      }
      if (kept_[s])
        marked(b_.CreateStore(steps_.narrowed(loop.values[s], step.type, step.type),
                              place_in_room(s, loop.index)));
    }
    for (Sum& sum : loop.sums) {
      const Step& fold = kernel_.steps[sum.step];
      sum.next = steps_.joined(fold, sum.phi, loop.values[fold.operands[0]]);
    }
    for (size_t k = 0; k < kernel_.outputs.size(); ++k) {
      const Port& port = kernel_.outputs[k];
      if (port.lie == Lie::Single || loop_of_result(k) != loop.number) continue;
      store(k, loop.values[kernel_.results[k]],
            element(port_of_result(k), port.lie, port.dtype, loop.index));
    }
  }

  void note_hard(Loop& loop, const Step& step) {
    if (step.kind != StepKind::Apply) return;
    Value* operands[3] = {};
    for (int k = 0; k < arity_of(step); ++k) operands[k] = loop.values[step.operands[k]];
    Value* const hard = steps_.hard(step, operands);
    if (hard) loop.hard = loop.hard ? b_.CreateOr(loop.hard, hard) : hard;
  }

  llvm::MDNode* loop_properties(bool vectorise) {
    const auto text = [&](const char* s) { return llvm::MDString::get(context_, s); };
    std::vector<llvm::Metadata*> list = {nullptr};
    list.push_back(llvm::MDNode::get(context_, {text("llvm.loop.parallel_accesses"), group_}));
    list.push_back(
        llvm::MDNode::get(context_, {text("llvm.loop.vectorize.enable"),
                                     llvm::ConstantAsMetadata::get(b_.getInt1(vectorise))}));
    llvm::MDNode* const made = llvm::MDNode::getDistinct(context_, list);
    made->replaceOperandWith(0, made);
    return made;
  }

  const Kernel& kernel_;
  llvm::LLVMContext& context_;
  Builder b_;
  Steps steps_;
  const std::vector<bool> kept_;
  const std::vector<std::vector<bool>> computed_;
  std::vector<size_t> places_;  // by step: its number among those in the room
  llvm::Function* function_ = nullptr;
  Value *count_ = nullptr, *room_ = nullptr;
  std::vector<Value*> starts_, across_, along_, at_;
  std::vector<Value*> row_values_;
  llvm::MDNode* group_ = nullptr;
};

}  // namespace

llvm::Function* emit_kernel(const Kernel& kernel, llvm::Module& module, const std::string& name) {
  return Emitter(kernel, module, name).run();
}

}  // namespace oar::codegen
