// From a kernel to native code in memory: the library of functions is linked in, LLVM's passes vectorise the loops, ORC places
// the code.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
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
#include <stdexcept>

#include "oar/compiler/codegen/codegen.h"
#include "oar/compiler/codegen/llvm/bitcode.h"
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
    jit_->getMainJITDylib().addGenerator(
        taken(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            jit_->getDataLayout().getGlobalPrefix())));
  }

  fusion::Code compile(const fusion::Kernel& kernel) {
    const std::string name = "oar_kernel_" + std::to_string(count_++);
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
    link_functions(*module, name);
    std::string problems;
    llvm::raw_string_ostream stream(problems);
    if (llvm::verifyModule(*module, &stream)) throw std::runtime_error(problems);
    optimise(*module);
    show(*module, "after the passes");
    check(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    return taken(jit_->lookup(name)).toPtr<fusion::Code>();
  }

 private:
  static void show(const llvm::Module& module, const char* when) {
    if (std::getenv("OAR_CODEGEN_DUMP") == nullptr) return;
    llvm::errs() << "; " << when << "\n";
    module.print(llvm::errs(), nullptr);
  }

  // Only the functions that are called come along, and all of them are inlined.
  static void link_functions(llvm::Module& module, const std::string& kernel) {
    const std::string_view bytes = functions_bitcode();
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
      f.addFnAttr(llvm::Attribute::AlwaysInline);
      f.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }

  void optimise(llvm::Module& module) {
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
    each.addPass(llvm::EarlyCSEPass());
    each.addPass(llvm::InstCombinePass());
    each.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
    each.addPass(llvm::SimplifyCFGPass());
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(each)));
    all.run(module, modules);
  }

  const int widest_;
  std::unique_ptr<llvm::TargetMachine> target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  int count_ = 0;
};

}  // namespace
}  // namespace oar::codegen

extern "C" __attribute__((visibility("default"))) oar::fusion::Code oar_codegen_compile(
    const oar::fusion::Kernel& kernel, int widest, std::string& why) try {
  // One for each width that was asked for. Their code is used until the end.
  static auto& compilers = *new std::map<int, oar::codegen::Compiler>;
  return compilers.try_emplace(widest, widest).first->second.compile(kernel);
} catch (const std::exception& error) {
  why = error.what();
  return nullptr;
}
