"""Runtimes that load a file and run it, each by its own best call. `call()` runs once and returns the results as arrays or tensors."""

import numpy as np


class OarPredictor:
    def __init__(self, threads):
        import oar
        self.module, self.version, self.threads = oar, oar.__version__, threads
        oar.set_num_threads(threads)

    def load(self, path, inputs, dtype):
        config = self.module.inference.Config(path)
        if dtype == "bfloat16":
            config.enable_mkldnn_bfloat16()
        predictor = self.module.inference.create_predictor(config)
        tensors = [self.module.to_tensor(inputs[name]) for name in predictor.get_input_names()]

        def call():
            results = predictor.run(tensors)
            for tensor in results:
                tensor.data_ptr()
            return results
        return call

    def arrays(self, results):
        return [tensor.numpy() for tensor in results]


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.module, self.version, self.threads = onnxruntime, onnxruntime.__version__, threads

    def load(self, path, inputs, dtype):
        if dtype != "float32":
            raise RuntimeError("ONNX Runtime's CPU kernels compute in float32")
        options = self.module.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = self.module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for result in session.get_outputs():
            binding.bind_output(result.name)

        def call():
            session.run_with_iobinding(binding)
            return binding.get_outputs()
        return call

    def arrays(self, results):
        return [value.numpy() for value in results]


class OpenVino:
    def __init__(self, threads):
        import openvino
        self.module, self.version, self.threads = openvino, openvino.__version__.split("-")[0], threads

    def load(self, path, inputs, dtype):
        core = self.module.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        compiled = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bfloat16" else "f32"})
        request = compiled.create_infer_request()
        for name, array in inputs.items():
            request.set_tensor(name, self.module.Tensor(np.ascontiguousarray(array), shared_memory=True))
        results = [request.get_output_tensor(i) for i in range(len(compiled.outputs))]

        def call():
            request.infer()
            return results
        return call

    def arrays(self, results):
        return [np.array(tensor.data) for tensor in results]


RUNTIMES = {"predictor": OarPredictor, "onnxruntime": OnnxRuntime, "openvino": OpenVino}
