#include "oar/runtime/oar_c.h"

#include "oar/base/function_ref.h"
#include "oar/runtime/predictor.h"

using oar::Predictor;

struct oar_predictor {
  Predictor predictor;
};

// A size that is known is its own word, so that a shape is a list of integers.
static_assert(sizeof(oar::Dim) == sizeof(int64_t));

namespace {

thread_local std::string t_error;

// No exception leaves the library.
int guarded_call(oar::FunctionRef<void()> body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    t_error = error.what();
  } catch (...) {
    t_error = "an unknown error";
  }
  return 1;
}

void check_given(const void* pointer, const char* what) {
  user_check(pointer, oar::ErrorKind::InvalidArgument, "{} is NULL.", what);
}

const char* name_at(const std::vector<oar::Model::Port>& ports, size_t i) {
  return i < ports.size() ? ports[i].name.c_str() : nullptr;
}

}  // namespace

oar_predictor* oar_predictor_create(const char* path, const char* method) {
  oar_predictor* made = nullptr;
  guarded_call([&] {
    check_given(path, "path");
    made = new oar_predictor{Predictor(oar::Model::load(path, method ? method : "forward"))};
  });
  return made;
}

oar_predictor* oar_predictor_clone(const oar_predictor* predictor) {
  oar_predictor* made = nullptr;
  guarded_call([&] {
    check_given(predictor, "predictor");
    made = new oar_predictor{predictor->predictor.clone()};
  });
  return made;
}

void oar_predictor_free(oar_predictor* predictor) { delete predictor; }

const char* oar_predictor_input_name(const oar_predictor* predictor, size_t i) {
  return predictor ? name_at(predictor->predictor.model().inputs(), i) : nullptr;
}
const char* oar_predictor_output_name(const oar_predictor* predictor, size_t i) {
  return predictor ? name_at(predictor->predictor.model().outputs(), i) : nullptr;
}

int oar_predictor_set_input(oar_predictor* predictor, const char* name, const char* dtype,
                            const int64_t* sizes, size_t rank, const void* data) {
  return guarded_call([&] {
    check_given(predictor, "predictor");
    check_given(name, "name");
    check_given(dtype, "dtype");
    if (rank > 0) check_given(sizes, "shape");
    const std::optional<oar::DType> type = oar::dtype_from_name(dtype);
    user_check(type, oar::ErrorKind::InvalidArgument, "'{}' is not a dtype.", dtype);
    user_check(rank <= 64, oar::ErrorKind::InvalidArgument, "the input '{}' has {} axes.", name,
               rank);
    oar::Shape shape;
    for (size_t i = 0; i < rank; ++i) {
      user_check(sizes[i] >= 0, oar::ErrorKind::InvalidArgument,
                 "the size {} of the input '{}' is negative.", sizes[i], name);
      shape.push_back(sizes[i]);
    }
    predictor->predictor.set_input(name, *type, shape, data);
  });
}

int oar_predictor_run(oar_predictor* predictor) {
  return guarded_call([&] {
    check_given(predictor, "predictor");
    predictor->predictor.run();
  });
}

int oar_predictor_output(oar_predictor* predictor, const char* name, oar_tensor_view* view) {
  return guarded_call([&] {
    check_given(predictor, "predictor");
    check_given(name, "name");
    check_given(view, "view");
    const oar::Tensor& t = predictor->predictor.output(name);
    const oar::Dims dims = t.dims();
    *view = {oar::name_of(t.dtype()), reinterpret_cast<const int64_t*>(dims.data()), dims.size(),
             t->data};
  });
}

const char* oar_last_error(void) { return t_error.c_str(); }
