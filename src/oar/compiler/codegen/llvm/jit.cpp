// From a kernel to object code: the library of functions is linked in, LLVM's passes vectorise the loops. ORC places object code in
// memory.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>

#include <cstdlib>
#include <map>
#include <new>
#include <stdexcept>

#include "oar/base/format.h"
#include "oar/compiler/codegen/codegen.h"
#include "oar/compiler/codegen/llvm/bitcode.h"
#include "oar/compiler/codegen/llvm/build_id.h"
#include "oar/compiler/codegen/llvm/emit.h"

namespace oar::codegen {
namespace {

template <class T>
T taken(llvm::Expected<T> made) {
  if (!made) throw std::runtime_error(llvm::toString(made.takeError()));
  return std::move(*made);
}
void check(llvm::Error error) {
  if (error) throw std::runtime_error(llvm::toString(std::move(error)));
}

void limit_features(llvm::orc::JITTargetMachineBuilder& machine, int widest) {
  if (widest >= 512) return;
  std::vector<std::string> off;
  for (const std::string& feature : machine.getFeatures().getFeatures())
    if (llvm::StringRef(feature).starts_with("+avx512")) off.push_back("-" + feature.substr(1));
  off.emplace_back("-evex512");
  machine.addFeatures(off);
}

class Compiler {
 public:
  explicit Compiler(int widest) : widest_(widest) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto builder = taken(llvm::orc::JITTargetMachineBuilder::detectHost());
    builder.setCPU(std::string(llvm::sys::getHostCPUName()));
    builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    limit_features(builder, widest);
    target_ = taken(builder.createTargetMachine());
    jit_ = taken(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(builder)).create());
    jit_->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });  // callers get them, too
  }

  std::string identity() const {
    return format("llvm {} for {} {} {}", LLVM_VERSION_STRING, target_->getTargetTriple().str(),
                  target_->getTargetCPU().str(), target_->getTargetFeatureString().str());
  }

  std::string compile(const fusion::Kernel& kernel) {
    const std::string name = kEntry;
    auto context = std::make_unique<llvm::LLVMContext>();
    // A loop that calls a library function stays as it is; nobody needs to be told.
    context->setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo*, void*) {}, nullptr);
    auto module = std::make_unique<llvm::Module>(name, *context);
    module->setDataLayout(jit_->getDataLayout());
    module->setTargetTriple(jit_->getTargetTriple().str());
    llvm::Function* const made = emit_kernel(kernel, *module, name);
    made->addFnAttr("target-cpu", target_->getTargetCPU());
    made->addFnAttr("target-features", target_->getTargetFeatureString());
    made->addFnAttr("prefer-vector-width", std::to_string(widest_));
    show(*module, "before the passes");
    const bool wide = widest_ >= 512 && has_wide_functions(*module);
    if (wide) link_functions(*module, name, wide_functions_bitcode());
    link_functions(*module, name, functions_bitcode());
    std::string problems;
    llvm::raw_string_ostream stream(problems);
    if (llvm::verifyModule(*module, &stream)) throw std::runtime_error(problems);
    optimise(*module, wide);
    show(*module, "after the passes");
    const auto object = taken(llvm::orc::SimpleCompiler(*target_)(*module));
    return object->getBuffer().str();
  }

  // A space of names of its own for each: one that fails leaves nothing behind.
  fusion::Code load(std::string_view object) {
    auto space = jit_->createJITDylib(format("kernel {}", count_++));
    if (!space) check(space.takeError());
    check(jit_->addObjectFile(
        *space, llvm::MemoryBuffer::getMemBufferCopy({object.data(), object.size()}, "kernel")));
    return taken(jit_->lookup(*space, kEntry)).toPtr<fusion::Code>();
  }

 private:
  static constexpr char kEntry[] = "oar_kernel";
  static constexpr char kErf[] = "oar_erf_f";  // with wide forms: functions_wide.cpp

  static void show(const llvm::Module& module, const char* when) {
    if (std::getenv("OAR_CODEGEN_DUMP") == nullptr) return;
    llvm::errs() << "; " << when << "\n";
    module.print(llvm::errs(), nullptr);
  }

  // Tells the vectoriser about the wide forms of the functions that the kernel calls.
  static bool has_wide_functions(llvm::Module& module) {
    llvm::Function* const narrow = module.getFunction(kErf);
    if (!narrow) return false;
    llvm::Type* const number = llvm::Type::getFloatTy(module.getContext());
    std::string variants;
    for (const unsigned lanes : {16U, 8U}) {
      auto* const vector = llvm::FixedVectorType::get(number, lanes);
      const std::string wide = format("{}_{}", kErf, lanes);
      module.getOrInsertFunction(wide, llvm::FunctionType::get(vector, {vector}, false));
      variants += format("{}_ZGV_LLVM_N{}v_{}({})", variants.empty() ? "" : ",", lanes, kErf, wide);
    }
    for (llvm::User* const user : narrow->users()) {
      auto* const call = llvm::cast<llvm::CallInst>(user);
      call->addFnAttr(
          llvm::Attribute::get(call->getContext(), "vector-function-abi-variant", variants));
      call->setDoesNotAccessMemory();
      call->setDoesNotThrow();
      call->addFnAttr(llvm::Attribute::WillReturn);
    }
    return true;
  }

  // Only the functions that are called come along, and all of them are inlined: those with wide forms after the vectoriser.
  static void link_functions(llvm::Module& module, const std::string& kernel,
                             std::string_view bytes) {
    auto functions = taken(
        llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "functions"), module.getContext()));
    functions->setDataLayout(module.getDataLayout());
    functions->setTargetTriple(module.getTargetTriple());
    if (llvm::Linker::linkModules(module, std::move(functions),
                                  llvm::Linker::Flags::LinkOnlyNeeded))
      throw std::runtime_error("the functions cannot be linked");
    for (llvm::Function& f : module) {
      if (f.isDeclaration() || f.getName() == kernel) continue;
      f.removeFnAttr("target-cpu");
      f.removeFnAttr("target-features");
      f.removeFnAttr("tune-cpu");
      f.removeFnAttr(llvm::Attribute::NoInline);
      f.removeFnAttr(llvm::Attribute::OptimizeNone);
      if (f.getName().starts_with(kErf)) continue;
      f.addFnAttr(llvm::Attribute::AlwaysInline);
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }

  static void inline_wide_functions(llvm::Module& module) {
    for (llvm::Function& f : module) {
      if (f.isDeclaration() || !f.getName().starts_with(kErf)) continue;
      f.addFnAttr(llvm::Attribute::AlwaysInline);
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }

  void optimise(llvm::Module& module, bool wide) {
    if (!wide) inline_wide_functions(module);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager graph;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder(target_.get());
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graph, modules);
    llvm::ModulePassManager all;
    all.addPass(llvm::AlwaysInlinerPass(false));
    all.addPass(llvm::GlobalDCEPass());
    llvm::FunctionPassManager each;
    each.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    each.addPass(llvm::EarlyCSEPass(true));
    each.addPass(llvm::InstCombinePass());
    each.addPass(llvm::SimplifyCFGPass());
    each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
    each.addPass(llvm::LoopVectorizePass());
    add_last(each);
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(each)));
    all.run(module, modules);
    if (!wide) return;
    inline_wide_functions(module);
    modules.invalidate(module, llvm::PreservedAnalyses::none());
    llvm::ModulePassManager rest;
    rest.addPass(llvm::AlwaysInlinerPass(false));
    rest.addPass(llvm::GlobalDCEPass());
    llvm::FunctionPassManager last;
    add_last(last);
    rest.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(last)));
    rest.run(module, modules);
  }

  static void add_last(llvm::FunctionPassManager& each) {
    each.addPass(llvm::EarlyCSEPass());
    each.addPass(llvm::InstCombinePass());
    each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
    each.addPass(llvm::SimplifyCFGPass());
  }

  const int widest_;
  std::unique_ptr<llvm::TargetMachine> target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  int count_ = 0;
};

// One for each width that was asked for. Their code is used until the end.
Compiler& compiler_for(int widest) {
  static auto& compilers = *new std::map<int, Compiler>;
  static const bool once [[maybe_unused]] = [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    return true;
  }();
  return compilers.try_emplace(widest, widest).first->second;
}

template <class Work>
auto attempt(std::string& why, Work work) -> decltype(work()) try {
  return work();
} catch (const std::exception& error) {
  why = error.what();
  return {};
}

std::string identity(int widest, std::string& why) {
  return attempt(why, [&]() -> std::string {
    const std::string builds = build_ids();
    return builds.empty() ? "" : format("{}; {}", builds, compiler_for(widest).identity());
  });
}
std::string compile(const fusion::Kernel& kernel, int widest, std::string& why) {
  return attempt(why, [&] { return compiler_for(widest).compile(kernel); });
}
fusion::Code load(std::string_view object, int widest, std::string& why) {
  return attempt(why, [&] { return compiler_for(widest).load(object); });
}

}  // namespace
}  // namespace oar::codegen

extern "C" __attribute__((visibility("default"))) const oar::codegen::Generator& oar_codegen() {
  static constexpr oar::codegen::Generator kGenerator{oar::codegen::identity, oar::codegen::compile,
                                                      oar::codegen::load};
  return kGenerator;
}
