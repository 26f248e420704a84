// Branches and loops on the values of tensors. Eagerly the functions are simply called. In a capture
// they are captured whole, as regions of one instruction: whichever way a run goes, the program has it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "oar/autograd/record.h"
#include "oar/base/api.h"

namespace OAR_API oar {

using Branch = std::function<std::vector<Tensor>()>;

// The results of the branch that the index names, and of the last one where it names none.
std::vector<Tensor> switch_case(const Tensor& index, const std::vector<Branch>& branches);
// … of `yes` where pred, one bool, is true. Without a `no`, `yes` must give nothing back: it is called
// for what it writes.
std::vector<Tensor> cond(const Tensor& pred, const Branch& yes, const Branch& no = {});

using LoopTest = std::function<Tensor(const std::vector<Tensor>& variables)>;
using LoopBody = std::function<std::vector<Tensor>(const std::vector<Tensor>& variables)>;

// The variables after as many bodies as the test allows. They keep their dtypes and
// numbers of axes; their sizes may change.
std::vector<Tensor> while_loop(const LoopTest& test, const LoopBody& body,
                               std::vector<Tensor> variables);

// Goes over the rows of the sequences. The body takes the carried tensors and one row of each sequence;
// it gives the carried tensors and whatever else, which is stacked.
std::vector<Tensor> scan(const LoopBody& body, const std::vector<Tensor>& carried,
                         const std::vector<Tensor>& sequences, bool reverse = false);

// A function with a derivative of its own, as autograd's custom_function. Inside a branch or loop, which is
// differentiated by its program, the derivative is captured along with it.
std::vector<Tensor> with_derivative(TensorList inputs, const CustomForward& forward,
                                    const CustomBackward& backward, const std::string& name);

// The number that decides: an index, or whether one value is true. Looks through the tangents of jvp.
int64_t choice_of(const Tensor& t);

}  // namespace oar
