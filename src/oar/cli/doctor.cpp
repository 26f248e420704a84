#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "oar/autograd/engine.h"
#include "oar/base/flags.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/base/version.h"
#include "oar/cli/commands.h"
#include "oar/cli/machine.h"
#include "oar/cli/python_check.h"
#include "oar/cli/terminal.h"
#include "oar/compiler/fusion/code.h"
#include "oar/device/device.h"
#include "oar/formats/json_reader.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/tensor/allocator.h"

namespace oar::cli {
namespace {

// What was found: printed at once, or kept for JSON.
class Report {
 public:
  Report(std::ostream& out, bool color, bool json) : out_(out), color_(color), json_(json) {}

  void title(std::string_view text) {
    section_ = text;
    if (!json_) out_ << (rows_ > 0 ? "\n" : "") << styled(text, Style::Bold, color_) << '\n';
  }
  void good(std::string_view what, const std::string& text) {
    add("✓", Style::Green, "good", what, text, "");
  }
  // Worth knowing, but nothing is broken.
  void note(std::string_view what, const std::string& text, const std::string& way_out) {
    notes_.emplace_back(what);
    add("•", Style::Yellow, "note", what, text, way_out);
  }
  void wrong(std::string_view what, const std::string& text, const std::string& way_out) {
    ++failures_;
    add("✗", Style::Red, "wrong", what, text, way_out);
  }
  // A check that throws is wrong, and the error says how.
  void attempt(std::string_view what, const std::function<void()>& check) {
    try {
      check();
    } catch (const Error& error) {
      wrong(what, error.text(), error.hint());
    } catch (const std::exception& error) {
      wrong(what, error.what(), "Reinstall Oar, or rebuild it with `make build`.");
    }
  }
  int failures() const { return failures_; }

  void finish() const {
    if (json_) {
      out_ << format("{{\"version\": {}, \"wrong\": {}, \"notes\": {}, \"checks\": [{}]}}\n",
                     json_quoted(version()), failures_, notes_.size(), join(objects_, ", "));
    } else if (failures_ > 0) {
      out_ << '\n'
           << styled(format("{} {} wrong.", failures_, failures_ == 1 ? "thing is" : "things are"),
                     Style::Red, color_)
           << '\n';
    } else {
      const std::string text =
          notes_.empty() ? "Everything is fine."
                         : format("Nothing is wrong; see the {} on {} above.",
                                  notes_.size() == 1 ? "note" : "notes", join(notes_, ", "));
      out_ << '\n' << styled(text, notes_.empty() ? Style::Green : Style::Yellow, color_) << '\n';
    }
  }

 private:
  static constexpr std::size_t kIndent = 16;
  void add(std::string_view mark, Style style, std::string_view state, std::string_view what,
           const std::string& text, const std::string& way_out) {
    ++rows_;
    if (json_) {
      objects_.push_back(
          format(R"({{"section": {}, "check": {}, "state": {}, "text": {}, "way_out": {}}})",
                 json_quoted(section_), json_quoted(what), json_quoted(state), json_quoted(text),
                 way_out.empty() ? "null" : json_quoted(way_out)));
      return;
    }
    line(mark, style, what, text);
    advise(way_out);
  }
  void line(std::string_view mark, Style style, std::string_view what, const std::string& text) {
    std::string name(what);
    name.resize(std::max(name.size(), kIndent - 4), ' ');
    out_ << "  " << styled(mark, style, color_) << ' ' << name;
    print_wrapped(text, Style::Plain);
  }
  void advise(const std::string& way_out) {
    if (way_out.empty()) return;
    out_ << std::string(kIndent, ' ');
    print_wrapped("→ " + way_out, Style::Dim);
  }
  void print_wrapped(const std::string& text, Style style) {
    const std::vector<std::string> lines = wrapped(text, terminal_width() - kIndent);
    for (std::size_t i = 0; i < lines.size(); ++i)
      out_ << (i > 0 ? std::string(kIndent, ' ') : "") << styled(lines[i], style, color_) << '\n';
  }

  std::ostream& out_;
  bool color_, json_;
  std::string section_;
  size_t rows_ = 0;
  int failures_ = 0;
  std::vector<std::string> notes_;    // what they are about
  std::vector<std::string> objects_;  // rows as JSON
};

// The load of the processors in the last minute, by all programs.
void report_load(Report& report, const Machine& machine, int threads) {
  if (machine.load < 0) return;
  const std::string load =
      format("{:.1f} programs wanted a processor in the last minute, {} {}", machine.load,
             machine.processors, machine.processors == 1 ? "is there" : "are there");
  if (machine.load > machine.processors + 0.5) {
    report.note("load", load,
                format("Others keep the processors busy, so an op on {} {} takes longer than on a "
                       "quiet machine. Fewer threads (OAR_NUM_THREADS) leave more to others.",
                       threads, threads == 1 ? "thread" : "threads"));
  } else {
    report.good("load", load);
  }
}

void report_machine(Report& report) {
  const Machine machine = inspect_machine();
  report.good("system", machine.system);
  const std::string features =
      machine.features.empty() ? "no known features" : join(machine.features, " ");
  const std::string cpu = format("{} ({})", machine.cpu, features);
  if (machine.has_avx2) {
    report.good("processor", cpu);
  } else {
    report.wrong("processor", cpu + ": AVX2, FMA and F16C are missing",
                 "Use a machine from 2013 (Haswell) or later; under a virtual machine, pass the "
                 "host's processor through.");
  }

  std::string cores = format("{} of {} processors", machine.usable, machine.processors);
  const double allowed = machine.quota > 0 ? std::min<double>(machine.quota, machine.usable)
                                           : static_cast<double>(machine.usable);
  if (machine.quota > 0) cores += format(", time for {:.1f}", machine.quota);
  const int threads = num_threads();
  cores += format("; an op uses up to {} {}", threads, threads == 1 ? "thread" : "threads");
  if (threads > std::ceil(allowed)) {
    report.note("cores", cores,
                format("More threads than processors slow each other down: set OAR_NUM_THREADS={}.",
                       std::max(1, static_cast<int>(allowed))));
  } else {
    report.good("cores", cores);
  }

  report_load(report, machine, threads);

  const std::string memory =
      format("{} free of {}{}", bytes_text(machine.memory_available), bytes_text(machine.memory),
             machine.memory_limit > 0
                 ? format(", limited to {} for this container", bytes_text(machine.memory_limit))
                 : "");
  if (machine.memory > 0 && machine.memory_available < (int64_t{256} << 20)) {
    report.wrong("memory", memory, "Close other programs, or give the container more memory.");
  } else {
    report.good("memory", memory);
  }
}

void report_allocator(Report& report) {
  constexpr size_t kBytes = size_t{4} << 20;
  for (int i = 0; i < 2; ++i) {
    const StoragePtr block = Storage::allocate(kBytes, Device{});
    auto* bytes = static_cast<char*>(block->data());
    bytes[0] = 1;
    bytes[kBytes - 1] = 1;
    if (reinterpret_cast<uintptr_t>(bytes) % cpu_allocator::kAlignment != 0) {
      report.wrong("allocator", "memory is not aligned",
                   "This is a bug in Oar; please report it with this report.");
      return;
    }
  }
  const int64_t limit = cpu_allocator::limit();
  report.good("allocator",
              format("{}, {}",
                     flag<bool>("cache_allocator") ? "keeps freed memory for reuse"
                                                   : "returns freed memory at once",
                     limit > 0 ? format("limited to {}", bytes_text(limit)) : "no limit"));
}

void report_devices(Report& report) {
  for (const DeviceType* type : devices::all()) {
    const int count = type->count();
    std::string text = count == 1 ? "1 device" : format("{} devices", count);
    for (int i = 0; i < count && i < 4; ++i) text += format(", {}", type->properties(i).name);
    if (count > 0) {
      report.good(type->name(), text);
    } else {
      report.note(type->name(), text, "The plug-in is loaded but sees no hardware.");
    }
  }
}

Tensor call(std::string_view name, const Tensor& x, const Tensor& y) {
  const Op& op = Registry::get().at(name);
  Frame frame = op.schema().defaults().clone();
  frame.set_tensor(0, x);
  if (y.defined()) frame.set_tensor(1, y);
  return dispatch(op, frame.args())[0];
}

Tensor ramp(int64_t rows, int64_t columns, int64_t modulus) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < rows * columns; ++i) values.push_back(i % modulus - modulus / 2);
  return Tensor::from_vector(values, Shape{rows, columns}, DType::Float32);
}

// Small integers in float32: every sum is exact, in any order, so the result must be exact too.
void check_arithmetic(Report& report) {
  constexpr int64_t kRows = 37, kInner = 53, kColumns = 29;
  const Tensor a = ramp(kRows, kInner, 7), b = ramp(kInner, kColumns, 5);
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();

  const std::vector<double> sum = call("add", a, a).to_vector<double>();
  bool right = sum.size() == x.size();
  for (std::size_t i = 0; right && i < x.size(); ++i) right = sum[i] == 2 * x[i];
  const std::string way_out =
      "Set OAR_TRACE=dispatch to see which kernel ran, and report it. If numbers differ from run "
      "to run, suspect the machine's memory.";
  if (right) {
    report.good("add", "returns the right numbers");
  } else {
    report.wrong("add", "returns wrong numbers", way_out);
  }

  const std::vector<double> product = call("matmul", a, b).to_vector<double>();
  right = product.size() == static_cast<std::size_t>(kRows * kColumns);
  for (int64_t i = 0; right && i < kRows; ++i)
    for (int64_t j = 0; right && j < kColumns; ++j) {
      double expected = 0;
      for (int64_t k = 0; k < kInner; ++k)
        expected += x[static_cast<std::size_t>(i * kInner + k)] *
                    y[static_cast<std::size_t>(k * kColumns + j)];
      right = product[static_cast<std::size_t>(i * kColumns + j)] == expected;
    }
  if (right) {
    report.good("matmul", "returns the right numbers");
  } else {
    report.wrong("matmul", "returns wrong numbers", way_out);
  }

  const Tensor leaf = ramp(4, 6, 9);
  set_stop_gradient(leaf, false);
  const Tensor square = call("multiply", leaf, leaf);
  const std::vector<double> gradient =
      grad(TensorList(&square, 1), TensorList(&leaf, 1))[0].to_vector<double>();
  const std::vector<double> values = leaf.to_vector<double>();
  right = gradient.size() == values.size();
  for (std::size_t i = 0; right && i < values.size(); ++i) right = gradient[i] == 2 * values[i];
  if (right) {
    report.good("gradients", "are right");
  } else {
    report.wrong("gradients", "are wrong", way_out);
  }
}

void check_registry(Report& report) {
  const std::vector<std::string> problems = Registry::get().validate();
  const std::string count = format("{} registered", Registry::get().all().size());
  if (problems.empty()) {
    report.good("ops", count);
  } else {
    report.wrong("ops",
                 format("{}; {} have a gap, the first: {}", count, problems.size(), problems[0]),
                 "Update the plug-in or the package that registers the op.");
  }
}

void report_code_generator(Report& report) {
  std::string why;
  if (!fusion::can_compile(&why)) {
    report.note("compiler", why,
                "Programs run call by call. `make build` with llvm-19-dev and clang-19 adds it.");
    return;
  }
  report.good("compiler",
              format("LLVM; fusion is {}; kernels on disk: {}", flag<bool>("fusion") ? "on" : "off",
                     fusion::kernel_cache_state()));
}

void report_python(Report& report) {
  const PythonCheck check = check_python();
  const std::string staged = staged_package();
  switch (check.state) {
    case PythonCheck::NoPython:
      report.note("python", format("{} cannot be run", check.detail),
                  "Only needed to use Oar from Python: install Python 3.9 or later, or set "
                  "OAR_PYTHON to it.");
      break;
    case PythonCheck::NotInstalled:
      report.note("python", format("{} does not find the package", check.interpreter),
                  staged.empty()
                      ? format("Only needed to use Oar from Python: {} -m pip install oar",
                               check.interpreter)
                      : format("It is in the build tree: export PYTHONPATH={}", staged));
      break;
    case PythonCheck::Broken:
      report.wrong("python",
                   format("{} cannot import the package: {}", check.interpreter, check.detail),
                   "Rebuild with `make build`, or reinstall with pip, for this interpreter.");
      break;
    case PythonCheck::Works:
      if (check.detail == version()) {
        report.good("python", format("{} imports oar {}", check.interpreter, check.detail));
      } else {
        report.wrong("python",
                     format("{} imports oar {}, but this command is {}", check.interpreter,
                            check.detail, version()),
                     "Install one version of both; a virtual environment keeps versions apart.");
      }
      break;
  }
}

}  // namespace

int doctor(std::ostream& out, bool color, bool json) {
  Report report(out, color, json);
  if (!json) out << "oar " << version() << "\n\n";
  report.title("Machine");
  report.attempt("machine", [&] { report_machine(report); });
  report.attempt("allocator", [&] { report_allocator(report); });
  report.title("Devices");
  report.attempt("devices", [&] { report_devices(report); });
  report.title("Oar");
  report.attempt("ops", [&] { check_registry(report); });
  report.attempt("numbers", [&] { check_arithmetic(report); });
  report.attempt("compiler", [&] { report_code_generator(report); });
  report.attempt("python", [&] { report_python(report); });
  report.finish();
  return report.failures() == 0 ? 0 : 1;
}

}  // namespace oar::cli
