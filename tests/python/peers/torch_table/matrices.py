"""Factors of matrices and what is solved with them."""

# The gradients of Hermitian matrices are Hermitian here; in PyTorch those of eigh are not.
_HERMITIAN = "(x + x.mH) / 2"

TORCH = {
    # cholesky
    "cholesky": "linalg.cholesky(x, upper=upper)",
    "cholesky_solve": "torch.cholesky_solve(x, y, upper)",
    "cholesky_inverse": "torch.cholesky_inverse(x, upper)",
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
    "least_squares": "linalg.pinv(x, rtol=rcond) @ y",
    # qr
    "qr_parts": "tuple(linalg.qr(x, 'complete' if complete else 'reduced'))",
    "householder_product": "linalg.householder_product(x, tau)",
    "ormqr": "(lambda q: q @ y if left else y @ q)((lambda q: q.mT if transpose else q)(linalg.householder_product(x, tau)))",
    # matrix_function
    "matrix_exp": "linalg.matrix_exp(x)",
}

DIFFERENT: dict[str, tuple[str, str, str]] = {}
CONSTANT: dict[str, tuple[str, ...]] = {"pseudo_inverse": ("rcond",)}
