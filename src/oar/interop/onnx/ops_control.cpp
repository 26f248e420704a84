// Branches and loops. What is known at import is decided there; the rest becomes regions of the program.
#include "oar/base/error.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

constexpr int64_t kMostUnrolled = 256;  // iterations of a loop

std::vector<Tensor> tensors_of(const Call& c, const Values& items) {
  std::vector<Tensor> tensors;
  for (const Item& item : items) {
    if (!item.tensor.defined())
      c.refuse("a sequence or an optional depends on what a run computes");
    tensors.push_back(item.tensor);
  }
  return tensors;
}
Values items_of(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }
std::optional<bool> truth_of(const Item& item) {
  if (!item.numbers || item.numbers->size() != 1) return std::nullopt;
  return item.numbers->at(0) != 0;
}

Values branch(const Call& c) {
  const Graph &yes = c.graph("then_branch"), &no = c.graph("else_branch");
  if (const auto known = truth_of(c.item(0))) return c.run_graph(*known ? yes : no, {});
  const auto run = [&](const Graph& graph) {
    return [&] { return tensors_of(c, c.run_graph(graph, {})); };
  };
  return c.captured(
      [&] { return items_of(cond(reshape(c.tensor(0), Shape{}), run(yes), run(no))); });
}

// Scan outputs of all iterations: the results of one are rows.
Tensor stacked(const Call& c, const Values& rows) {
  if (rows.empty()) c.refuse("it stacks the results of no iteration");
  return stack(tensors_of(c, rows), 0);
}

struct Loop {
  std::optional<int64_t> count;  // of iterations, if it is known
  bool counted = false;          // has a count
  std::optional<bool> begins;    // whether the first one runs
};

// All iterations one after the other. Nothing if an iteration must wait for what a run computes.
std::optional<Values> unrolled(const Call& c, const Loop& loop, Values variables) {
  const Graph& body = c.graph("body");
  const size_t carried = variables.size();
  std::vector<Values> rows(body.outputs.size() - 1 - carried);
  bool goes_on = *loop.begins;
  for (int64_t i = 0; goes_on && (!loop.counted || i < *loop.count); ++i) {
    if (i >= kMostUnrolled && !c.steps()) return std::nullopt;
    Values inputs{c.known(i), c.known(goes_on)};
    inputs.insert(inputs.end(), variables.begin(), variables.end());
    const Values made = c.run_graph(body, inputs);
    const auto next = truth_of(made[0]);
    if (!next && !(loop.counted && i + 1 == *loop.count)) return std::nullopt;
    goes_on = next.value_or(false);
    variables.assign(made.begin() + 1, made.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(made[1 + carried + k]);
  }
  return c.captured([&] {
    Values results = variables;
    for (const Values& r : rows) results.emplace_back(stacked(c, r));
    return results;
  });
}

// A loop of the program over the counter, the condition and the variables.
Values looped(const Call& c, const Loop& loop, const Values& variables) {
  const Graph& body = c.graph("body");
  if (body.outputs.size() != variables.size() + 1)
    c.refuse("it stacks the results of iterations whose number a run computes");
  std::vector<Tensor> start{zeros({}, DType::Int64),
                            c.has(1) ? reshape(c.tensor(1), Shape{}) : full({}, true, DType::Bool)};
  const Tensor most = loop.counted ? reshape(c.tensor(0), Shape{}) : Tensor{};
  for (const Tensor& t : tensors_of(c, variables)) start.push_back(t);
  const auto test = [&](const std::vector<Tensor>& now) {
    return most.defined() ? logical_and(now[1], less_than(now[0], most)) : assign(now[1]);
  };
  const auto step = [&](const std::vector<Tensor>& now) {
    const std::vector<Tensor> made = tensors_of(c, c.run_graph(body, items_of(now)));
    std::vector<Tensor> next{now[0] + 1, reshape(made[0], Shape{})};
    next.insert(next.end(), made.begin() + 1, made.end());
    return next;
  };
  const std::vector<Tensor> end = while_loop(test, step, start);
  return items_of({end.begin() + 2, end.end()});
}

Values loop_of(const Call& c) {
  const Graph& body = c.graph("body");
  Values variables;
  for (size_t i = 2; i < c.count(); ++i) variables.push_back(c.item(i));
  if (body.outputs.size() < variables.size() + 1 || body.inputs.size() != variables.size() + 2)
    c.refuse("its body does not fit its inputs");
  Loop loop;
  loop.counted = c.has(0);
  if (loop.counted && c.item(0).numbers) loop.count = c.integers(0).at(0);
  loop.begins = c.has(1) ? truth_of(c.item(1)) : true;
  // Unrolling is tried where it may end; what it captured until then is not used and goes away.
  const bool may_end =
      loop.begins && (loop.counted ? loop.count && *loop.count <= kMostUnrolled : true);
  const bool must = body.outputs.size() > variables.size() + 1 ||
                    std::any_of(variables.begin(), variables.end(),
                                [](const Item& v) { return v.sequence != nullptr; });
  if (c.steps()) return *unrolled(c, loop, variables);
  constexpr int64_t kFewNodes = 512;
  const int64_t nodes = loop.count.value_or(1) * static_cast<int64_t>(body.nodes.size());
  if (may_end && (must || (loop.count && nodes <= kFewNodes)))
    if (auto made = unrolled(c, loop, variables)) return *made;
  return c.captured([&] { return looped(c, loop, variables); });
}

// ---- scan --------------------------------------------------------------------------------------

using Step = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// `scan` without a program: row after row.
std::vector<Tensor> scanned_in_steps(const Call& c, const Step& step, std::vector<Tensor> carried,
                                     const std::vector<Tensor>& rows) {
  const int64_t count = rows[0].dim(0).value();
  std::vector<Values> made;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Tensor> now = carried;
    for (const Tensor& row : rows) {
      if (row.dim(0).value() != count) c.refuse("its sequences have different lengths");
      now.push_back(squeeze(slice(row, {0}, {i}, {i + 1}), IntArgs({0})));
    }
    const std::vector<Tensor> results = step(now);
    if (results.size() < carried.size()) c.refuse("its body does not fit its inputs");
    made.resize(results.size() - carried.size());
    for (size_t k = 0; k < made.size(); ++k) made[k].emplace_back(results[carried.size() + k]);
    carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carried.size()));
  }
  if (count == 0) c.refuse("its sequences are empty");
  for (const Values& one : made) carried.push_back(stacked(c, one));
  return carried;
}

Values scanned(const Call& c, const Values& inputs) {
  const Graph& body = c.graph("body");
  const auto sequences = static_cast<size_t>(c.integer("num_scan_inputs", 0));
  if (sequences > inputs.size() || sequences == 0) c.refuse("it has no sequences");
  const size_t carried = inputs.size() - sequences;
  const char* directions = c.opset < 9 ? "directions" : "scan_input_directions";
  const auto at = [&](const char* name, size_t i) {
    const std::vector<int64_t> list = c.list(name);
    return i < list.size() ? list[i] : 0;
  };
  return c.captured([&] {
    std::vector<Tensor> start, rows;
    for (size_t i = 0; i < carried; ++i) start.push_back(inputs[i].tensor);
    for (size_t i = 0; i < sequences; ++i) {
      Tensor rows_of = inputs[carried + i].tensor;
      if (const int64_t axis = at("scan_input_axes", i); axis != 0)
        rows_of = moveaxis(rows_of, {axis}, {0});
      rows.push_back(at(directions, i) ? flip(rows_of, {0}) : rows_of);
    }
    const auto step = [&](const std::vector<Tensor>& now) {
      return tensors_of(c, c.run_graph(body, items_of(now)));
    };
    std::vector<Tensor> made =
        c.steps() ? scanned_in_steps(c, step, start, rows) : scan(step, start, rows);
    for (size_t i = carried; i < made.size(); ++i) {
      if (at("scan_output_directions", i - carried)) made[i] = flip(made[i], {0});
      if (const int64_t axis = at("scan_output_axes", i - carried); axis != 0)
        made[i] = moveaxis(made[i], {0}, {axis});
    }
    return items_of(made);
  });
}
// Version 8 has lengths first, which nothing may give here, and a batch axis in front of everything: the body sees one sequence of
// the batch, and all of them are computed one after the other.
Values scan_of_batch(const Call& c) {
  if (c.has(0)) c.refuse("its sequences have different lengths");
  Values inputs;
  for (size_t i = 1; i < c.count(); ++i) inputs.push_back(c.item(i));
  const int64_t batch = c.tensor(1).dim(0).value();
  if (batch <= 0 || batch > kMostUnrolled)
    c.refuse("its batch is empty, or has more than 256 sequences");
  std::vector<Values> results;
  for (int64_t i = 0; i < batch; ++i) {
    Values one;
    c.captured([&]() -> Values {
      for (const Item& item : inputs)
        one.emplace_back(squeeze(slice(item.tensor, {0}, {i}, {i + 1}), IntArgs({0})));
      return {};
    });
    results.push_back(scanned(c, one));
  }
  return c.captured([&] {
    Values joined;
    for (size_t k = 0; k < results[0].size(); ++k) {
      std::vector<Tensor> rows;
      for (const Values& r : results) rows.push_back(r[k].tensor);
      joined.emplace_back(stack(rows, 0));
    }
    return joined;
  });
}
Values scan_of(const Call& c) {
  if (c.opset < 9) return scan_of_batch(c);
  Values inputs;
  for (size_t i = 0; i < c.count(); ++i) inputs.push_back(c.item(i));
  return scanned(c, inputs);
}

constexpr Converter kConverters[] = {{"If", branch}, {"Loop", loop_of}, {"Scan", scan_of}};

}  // namespace

std::span<const Converter> control_converters() { return kConverters; }

}  // namespace oar::onnx
