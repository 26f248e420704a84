#include "oar/cli/tensor_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>

#include "oar/base/format.h"
#include "oar/base/string_util.h"
#include "oar/cli/terminal.h"
#include "oar/formats/json_reader.h"

namespace oar::cli {
namespace {

constexpr size_t kFew = 64;        // elements that JSON shows one by one
constexpr size_t kMostRows = 8;    // of class scores
constexpr size_t kFewClasses = 5;  // fewer numbers are not scores of classes

std::string shown(double value) { return format("{:.6g}", value); }

bool has_numbers(const Tensor& t) {
  return t.is_dense() && !is_complex(t.dtype()) && !is_stored(t.dtype());
}

std::string label_of(int64_t index, const std::vector<std::string>& labels) {
  return static_cast<size_t>(index) < labels.size() ? labels[static_cast<size_t>(index)] : "";
}

std::string json_scores(const Tensor& tensor, const std::vector<std::string>& labels) {
  std::vector<std::string> rows;
  for (const auto& row : top_scores(tensor)) {
    std::vector<std::string> scores;
    for (const Score& s : row) {
      const std::string label = label_of(s.index, labels);
      scores.push_back(format("{{\"index\": {}, \"score\": {}{}}}", s.index, json_number(s.value),
                              label.empty() ? "" : format(", \"label\": {}", json_quoted(label))));
    }
    rows.push_back("[" + join(scores, ", ") + "]");
  }
  return rows.empty() ? "" : ", \"top\": [" + join(rows, ", ") + "]";
}

}  // namespace

Statistics statistics_of(const Tensor& tensor) {
  Statistics s;
  double sum = 0;
  for (const double x : tensor.to_vector<double>()) {
    if (!std::isfinite(x)) {
      ++s.others;
      continue;
    }
    s.min = s.finite == 0 ? x : std::min(s.min, x);
    s.max = s.finite == 0 ? x : std::max(s.max, x);
    sum += x;
    ++s.finite;
  }
  s.mean = s.finite == 0 ? 0 : sum / static_cast<double>(s.finite);
  return s;
}

std::vector<std::vector<Score>> top_scores(const Tensor& tensor, size_t count) {
  const int rank = tensor.rank();
  if (rank < 1 || rank > 2 || !is_floating(tensor.dtype())) return {};
  const auto classes = static_cast<size_t>(tensor.dim(-1).value());
  const auto rows = rank == 1 ? size_t{1} : static_cast<size_t>(tensor.dim(0).value());
  if (classes < kFewClasses) return {};
  const std::vector<double> values = tensor.to_vector<double>();
  std::vector<std::vector<Score>> made;
  for (size_t row = 0; row < std::min(rows, kMostRows); ++row) {
    std::vector<size_t> order(classes);
    std::iota(order.begin(), order.end(), 0);
    const double* first = values.data() + row * classes;
    const auto higher = [&](size_t a, size_t b) {
      const double x = std::isnan(first[a]) ? -INFINITY : first[a];
      const double y = std::isnan(first[b]) ? -INFINITY : first[b];
      return x != y ? x > y : a < b;
    };
    const size_t kept = std::min(count, classes);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      higher);
    made.emplace_back();
    for (size_t i = 0; i < kept; ++i)
      made.back().push_back({static_cast<int64_t>(order[i]), first[order[i]]});
  }
  return made;
}

std::string json_number(double value) {
  return std::isfinite(value) ? format("{:.9g}", value) : "null";
}

std::string json_shape(Dims dims) {
  std::vector<std::string> sizes;
  for (const Dim d : dims) sizes.push_back(d.is_known() ? d.str() : json_quoted(d.str()));
  return "[" + join(sizes, ", ") + "]";
}

void print_tensors(std::ostream& out, bool color, const std::vector<NamedTensor>& tensors,
                   const std::vector<std::string>& labels) {
  Table table({"output", "type", "min", "mean", "max", ""});
  for (const auto& [name, tensor] : tensors) {
    if (!has_numbers(tensor) || tensor.numel() == Dim(0)) {
      table.add({name, tensor.describe(), "", "", "", ""});
      continue;
    }
    const Statistics s = statistics_of(tensor);
    table.add({name, tensor.describe(), shown(s.min), shown(s.mean), shown(s.max),
               s.others == 0
                   ? ""
                   : format("{} of {} are NaN or infinite", s.others, s.others + s.finite)});
  }
  table.print(out, color);
  for (const auto& [name, tensor] : tensors) {
    const auto rows = top_scores(tensor);
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<std::string> words;
      for (const Score& s : rows[row]) {
        const std::string label = label_of(s.index, labels);
        words.push_back(
            format("{} {}", label.empty() ? std::to_string(s.index) : label, shown(s.value)));
      }
      out << format("{}{}: largest {}\n", name, rows.size() > 1 ? format("[{}]", row) : "",
                    join(words, ", "));
    }
  }
}

std::string json_tensors(const std::vector<NamedTensor>& tensors,
                         const std::vector<std::string>& labels) {
  std::vector<std::string> objects;
  for (const auto& [name, tensor] : tensors) {
    std::string text = format("{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}", json_quoted(name),
                              name_of(tensor.dtype()), json_shape(tensor.dims()));
    if (has_numbers(tensor)) {
      const Statistics s = statistics_of(tensor);
      if (s.finite > 0)
        text += format(", \"min\": {}, \"mean\": {}, \"max\": {}", json_number(s.min),
                       json_number(s.mean), json_number(s.max));
      text += format(", \"not_finite\": {}", s.others) + json_scores(tensor, labels);
      const std::vector<double> values = tensor.to_vector<double>();
      std::vector<std::string> words;
      for (size_t i = 0; i < values.size() && values.size() <= kFew; ++i)
        words.push_back(json_number(values[i]));
      if (!words.empty()) text += ", \"values\": [" + join(words, ", ") + "]";
    }
    objects.push_back(text + "}");
  }
  return "[" + join(objects, ", ") + "]";
}

}  // namespace oar::cli
