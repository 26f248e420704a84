#include "oar/backend/cts/conformance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "oar/backend/cts/services.h"
#include "oar/device/device.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/copy.h"

namespace oar::cts {
namespace {

constexpr DType kTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,      DType::Int16,
                            DType::Int32,   DType::Int64,   DType::Float16,   DType::BFloat16,
                            DType::Float32, DType::Float64, DType::Complex64, DType::Complex128};

// Relative to the largest value of the result, since sums may cancel.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::BFloat16:
      return 2e-2;
    case DType::Float16:
      return 4e-3;
    case DType::Float32:
    case DType::Complex64:
      return 2e-5;
    case DType::Float64:
    case DType::Complex128:
      return 1e-10;
    case DType::Float8E4M3FN:
    case DType::Float8E5M2:
      return 0.3;
    default:
      return 0;
  }
}

bool differ(std::complex<double> a, std::complex<double> b, double allowed) {
  const auto differ_part = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) != std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x != y;
    return std::fabs(x - y) > allowed;
  };
  return differ_part(a.real(), b.real()) || differ_part(a.imag(), b.imag());
}

// What is wrong with a result, or nothing.
std::string complaint(const Tensor& expected, const Tensor& got, Device device, bool values) {
  if (expected.dtype() != got.dtype() || !(expected.shape() == got.shape()))
    return format("is {} instead of {}", got.describe(), expected.describe());
  if (got.device() != device)
    return format("is on {} instead of {}", devices::to_string(got.device()),
                  devices::to_string(device));
  const auto b = to_device(got, Device{}).to_vector<std::complex<double>>();
  if (!values) return {};
  const auto a = expected.to_vector<std::complex<double>>();
  double largest = 1;
  for (const auto& v : a)
    if (std::isfinite(std::abs(v))) largest = std::max(largest, std::abs(v));
  const double allowed = tolerance(expected.dtype()) * largest;
  for (size_t i = 0; i < a.size(); ++i)
    if (differ(a[i], b[i], allowed))
      return format("element {} is {}{:+}i instead of {}{:+}i", i, b[i].real(), b[i].imag(),
                    a[i].real(), a[i].imag());
  return {};
}

// A call's arguments on another device. Every tensor is a copy, so that in-place ops may write it.
Frame on_device(const Frame& frame, Device device) {
  const auto there = [&](const Tensor& t) {
    return !t.defined() ? t : device == t.device() ? assign(t) : to_device(t, device);
  };
  Frame moved = frame.clone();
  for (size_t i = 0; i < frame.size(); ++i) {
    if (frame[i].is_tensor()) moved.set_tensor(i, there(frame[i].as_tensor()));
    if (!frame[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : frame[i].as_tensors()) list.push_back(there(t));
    moved.set_tensors(i, std::move(list));
  }
  return moved;
}

// A call without tensors creates its result on the current device.
Outputs run_on(const Op& op, const Frame& frame, Device device) {
  const devices::Scope scope(device);
  return dispatch(op, frame.args());
}

Finding compare(const Op& op, const Frame& frame, const Outputs& expected, Device device,
                std::string what) {
  const Frame there = on_device(frame, device);
  const Outputs got = run_on(op, there, device);
  if (got.size() != expected.size())
    return {what, Outcome::Fail,
            format("returns {} results instead of {}", got.size(), expected.size())};
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string text = complaint(expected[i], got[i], device, !op.has(Trait::Random));
    if (!text.empty()) return {what, Outcome::Fail, format("result {} {}", i, text)};
  }
  return {std::move(what), Outcome::Pass, {}};
}

// The result's device is an argument of this op, not the device under test.
bool places_its_result(const Op& op) { return op.schema().index_of("device") >= 0; }

void run_op_samples(const Op& op, Device device, std::vector<Finding>& findings) {
  if (!op.def().samples || places_its_result(op)) return;
  const Samples samples = op.def().samples();
  for (size_t i = 0; i < samples.size(); ++i)
    for (DType dtype : kTypes) {
      std::string what = format("{} sample {} {}", op.name(), i, name_of(dtype));
      Frame frame;
      Outputs expected;
      try {
        frame = samples[i].make(op.schema(), dtype, i + 1);
        expected = run_on(op, on_device(frame, Device{}), Device{});
      } catch (const Error&) {
        continue;  // not a call of the op: a dtype it does not accept
      }
      try {
        findings.push_back(compare(op, frame, expected, device, what));
      } catch (const Error& error) {
        const Outcome outcome =
            error.kind() == ErrorKind::Unsupported ? Outcome::Unsupported : Outcome::Fail;
        findings.push_back({std::move(what), outcome, error.what()});
      }
    }
}

}  // namespace

std::vector<Finding> run_conformance(Device device, const Options& options) {
  std::vector<Finding> findings;
  if (options.only_op.empty()) findings = check_services(device);
  for (const Op* op : Registry::get().all())
    if (options.only_op.empty() || op->name() == options.only_op)
      run_op_samples(*op, device, findings);
  return findings;
}

std::string summary(const std::vector<Finding>& findings) {
  const auto count = [&](Outcome outcome) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Finding& f) { return f.outcome == outcome; });
  };
  std::string text = format("{} passed, {} failed, {} unsupported\n", count(Outcome::Pass),
                            count(Outcome::Fail), count(Outcome::Unsupported));
  std::map<std::string, int> reasons;
  for (const Finding& f : findings) {
    if (f.outcome == Outcome::Fail) text += format("FAILED {}: {}\n", f.what, f.text);
    if (f.outcome == Outcome::Unsupported)
      ++reasons[f.what.substr(0, f.what.find(' ')) + ": " + f.text];
  }
  for (const auto& [reason, calls] : reasons)
    text += format("unsupported ({} calls) {}\n", calls, reason);
  return text;
}

}  // namespace oar::cts
