"""Factors of matrices and what is solved with them."""

# The gradients of Hermitian matrices are Hermitian here; in PyTorch those of eigh and cholesky are not.
_HERMITIAN = "(x + x.mH) / 2"

TORCH = {
    # cholesky
    "cholesky": f"linalg.cholesky({_HERMITIAN}, upper=upper)",
    # Both read one triangle. PyTorch has gradients for the other one, too.
    "cholesky_solve": "torch.cholesky_solve(x, y.triu() if upper else y.tril(), upper)",
    "cholesky_inverse": "torch.cholesky_inverse(x.triu() if upper else x.tril(), upper)",
    # solve
    "triangular_solve_core": "linalg.solve_triangular(x.mH if adjoint else x, y, upper=upper != adjoint, "
                             "unitriangular=unitriangular)",
    "triangular_solve": "linalg.solve_triangular(x.mT if transpose else x, y, upper=upper != transpose, "
                        "unitriangular=unitriangular)",
    "solve_core": "linalg.solve(x, y)",
    "solve": "linalg.solve(x, y, left=left) if y.ndim > 1 and y.shape != x.shape[:-1] else "
             "linalg.solve(x if left else x.mT, y.expand(x.shape[:-1]).unsqueeze(-1)).squeeze(-1)",
    "inverse": "linalg.inv(x)",
    # lu
    "lu_factor": "linalg.lu_factor_ex(x)",
    "lu_parts": "torch.lu_unpack(x, y)",
    "lu_solve": "linalg.lu_solve(lu.conj() if trans == 'T' else lu, pivots, b, adjoint=trans != 'N')",
    "det": "linalg.det(x)",
    "cofactors": "linalg.det(x)[..., None, None] * linalg.inv(x).mT if x.shape[-1] > 1 else x * 0 + 1",
    "slogdet_parts": "tuple(linalg.slogdet(x))",
    # eigen
    "eigh": f"(lambda w, v: (w, gauged(v)))(*linalg.eigh({_HERMITIAN}, UPLO))",
    "eigvalsh": f"linalg.eigvalsh({_HERMITIAN}, UPLO)",
    "eig": "(lambda w, v: (w, gauged(v)))(*linalg.eig(x))",
    "eigvals": "linalg.eigvals(x)",
    # svd
    "svd": "gauged_svd(x, full_matrices)",
    "svdvals": "linalg.svdvals(x)",
    "pseudo_inverse": f"linalg.pinv({_HERMITIAN} if hermitian else x, rtol=rcond.to(x.real.dtype), hermitian=hermitian)",
    "least_squares": "(linalg.pinv(x, rtol=rcond) @ y, linalg.svdvals(x))",
    # qr
    "qr_parts": "tuple(linalg.qr(x, 'complete' if complete else 'reduced'))",
    "householder_product": "linalg.householder_product(x, tau)",
    "ormqr": "(lambda q: q @ y if left else y @ q)((lambda q: q.mT if transpose else q)(linalg.householder_product(x, tau)))",
    # matrix_function
    "matrix_exp": "linalg.matrix_exp(x)",
    # fft
    "fft_c2c": "(torch.fft.fftn if forward else torch.fft.ifftn)(x, dim=axes, norm=normalization)",
    "fft_c2r": "fft_c2r(x, axes, normalization, forward, last_dim_size)",
    "fft_r2c": "fft_r2c(x, axes, normalization, forward, onesided)",
}

DIFFERENT: dict[str, tuple[str, str, str]] = {
    "det": ("gradients", "np.any(np.linalg.matrix_rank(x.numpy()) == x.shape[-1] - 1)",
            "the cofactors of a singular matrix; PyTorch has 0"),
}
CONSTANT: dict[str, tuple[str, ...]] = {"pseudo_inverse": ("rcond",)}
