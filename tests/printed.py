"""The published algorithms transcribed from the paper, misprints corrected: plain NumPy, dense, short runs, no shared code.

Each returns the list of iterates that the propositions speak of. `A` is a dense float64 array with rows of norm at most 1.
"""

from __future__ import annotations

import numpy as np


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def smooth_perceptron(A, rounds, mu0=4.0):
    """Algorithm 1, first box: [(v_0, q_0), …, (v_{T-1}, q_{T-1})]."""
    n = len(A)
    mu, v = mu0, A.T @ np.full(n, 1 / n)
    q = softmax(-A @ v / mu)
    iterates = [(v, q)]
    theta = 2 / 3
    for t in range(1, rounds):
        v = (1 - theta) * (v + theta * A.T @ q) + theta**2 * A.T @ softmax(-A @ v / mu)
        mu = (1 - theta) * mu
        q = (1 - theta) * q + theta * softmax(-A @ v / mu)
        theta = 2 / (t + 3)
        iterates.append((v, q))
    return iterates


def accelerated_perceptron(A, rounds, theta=lambda t: t / (2 * (t + 1))):
    """Algorithm 2, first box: [(v_1, q_1, g_1), …]; theta(t) is the paper's θ_{t-1}."""
    n, d = A.shape
    q, v, g = np.full(n, 1 / n), np.zeros(d), np.zeros(d)
    iterates = []
    for t in range(1, rounds + 1):
        v = v - theta(t) * (g - A.T @ q)
        q = softmax(-A @ v)
        g = t / (t + 1) * (g - A.T @ q)
        iterates.append((v, q, g))
    return iterates


def nmgd(A, rounds, theta=lambda t: t / (2 * (t + 1))):
    """Normalized momentum gradient descent on R(v) = mean e^{-A_i·v}, with R and ∇R formed as they stand: [v_1, v_2, …]."""
    n, d = A.shape

    def slope(v):
        e = np.exp(-A @ v)
        return -(A.T @ e / n) / (e.sum() / n)

    v, g, iterates = np.zeros(d), np.zeros(d), []
    for t in range(rounds):
        g = t / (t + 1) * (g + slope(v))
        v = v - theta(t + 1) * (g + slope(v))
        iterates.append(v)
    return iterates


def mirror_prox(A, rounds):
    """Algorithm 5, first box, with the prox map of R = α_w ½‖w‖² + α_p E: [(u_t, v_{t+1}, z_t)], each a pair (w, p)."""
    n, d = A.shape
    Omega_w, Omega_p = 0.5, np.log(n)
    gamma = 1 / (np.sqrt(Omega_p) + np.sqrt(Omega_w))
    alpha_w = np.sqrt(Omega_p) * gamma
    alpha_p = gamma / np.sqrt(Omega_p)

    def F(w, p):
        return -A.T @ p, A @ w

    def prox(v, z):
        """argmin u·z + D_R(u, v) over ball × simplex."""
        w = v[0] - z[0] / alpha_w
        return w / max(1.0, np.linalg.norm(w)), softmax(np.log(v[1]) - z[1] / alpha_p)

    v, iterates, total = (np.zeros(d), np.full(n, 1 / n)), [], (np.zeros(d), np.zeros(n))
    for t in range(1, rounds + 1):
        u = prox(v, [gamma * part for part in F(*v)])
        v = prox(v, [gamma * part for part in F(*u)])
        total = (total[0] + gamma * u[0], total[1] + gamma * u[1])
        iterates.append((u, v, (total[0] / (gamma * t), total[1] / (gamma * t))))
    return iterates


def nesterov(A, rounds):
    """Algorithm 3, first box, with R and ∇R formed as they stand: [s_1, s_2, …]."""
    n, d = A.shape

    def R(u):
        return np.exp(-A @ u).sum() / n

    def gradient(u):
        return -A.T @ np.exp(-A @ u) / n

    v, s, iterates = np.zeros(d), np.zeros(d), []
    for t in range(1, rounds + 1):
        u = s + v / (2 * (t - 1)) if t > 1 else np.zeros(d)
        v = v - t / R(u) * gradient(u)
        s = s + v / (2 * (t + 1))
        iterates.append(s)
    return iterates


def gradient_descent(A, rounds):
    """v -= ∇R(v), R(v) = mean e^{-A_i·v}: [v_1, v_2, …]."""
    v, iterates = np.zeros(A.shape[1]), []
    for _ in range(rounds):
        v = v + A.T @ np.exp(-A @ v) / len(A)
        iterates.append(v)
    return iterates


def normalized_gradient_descent(A, rounds, step):
    """v -= η_t ∇R(v)/R(v): [v_1, v_2, …]."""
    v, iterates = np.zeros(A.shape[1]), []
    for t in range(1, rounds + 1):
        e = np.exp(-A @ v)
        v = v + step(t) * (A.T @ e) / e.sum()
        iterates.append(v)
    return iterates


def p_norm_perceptron(A, p):
    """Gentile's loop: θ += A_i on a mistake, w = ∇½‖θ‖_p²: (w, number of mistakes)."""
    theta, mistakes = np.zeros(A.shape[1]), 0

    def link(theta):
        length = np.linalg.norm(theta, ord=p)
        return np.sign(theta) * np.abs(theta) ** (p - 1) * length ** (2 - p) if length > 0 else theta

    while (A @ link(theta) <= 0).any():
        for row in A:
            if row @ link(theta) <= 0:
                theta = theta + row
                mistakes += 1
    return link(theta), mistakes


def accelerated_p_norm(A, rounds, p, ball):
    """Algorithm 4 with the same η for the guess: [(w_t, p_t)]; w kept in the unit q-ball if `ball`."""
    n, d = A.shape
    q = p / (p - 1)
    eta = 1 / np.sqrt(2 * (q - 1) * np.log(n))
    c_sum, s_sum, last, iterates = np.zeros(d), np.zeros(n), A.T @ np.full(n, 1 / n), []
    for _ in range(rounds):
        theta = eta * (c_sum + last)
        length = np.linalg.norm(theta, ord=p)
        w = (q - 1) * np.sign(theta) * np.abs(theta) ** (p - 1) * length ** (2 - p)
        if ball:
            w = w / max(1.0, np.linalg.norm(w, ord=q))
        s_sum = s_sum + A @ w
        weights = softmax(-s_sum / eta)
        last = A.T @ weights
        c_sum = c_sum + last
        iterates.append((w, weights))
    return iterates


def smooth_p_norm(A, rounds, p):
    """The regularized p-norm game: w_t = ∇½‖·‖_p² at the optimistic average of Aᵀp, p_t by FTRL⁺, η = (q-1)/4: [(w_t, p_t)]."""
    n, d = A.shape
    eta = 1 / (4 * (p - 1))
    c_sum, s_sum, last, iterates = np.zeros(d), np.zeros(n), A.T @ np.full(n, 1 / n), []
    for t in range(1, rounds + 1):
        theta = (c_sum + t * last) / (t * (t + 1) / 2)
        w = np.sign(theta) * np.abs(theta) ** (p - 1) * np.linalg.norm(theta, ord=p) ** (2 - p)
        s_sum = s_sum + t * (A @ w)
        weights = softmax(-eta * s_sum)
        last = A.T @ weights
        c_sum = c_sum + t * last
        iterates.append((w, weights))
    return iterates


# ---- beyond the paper ------------------------------------------------------------------------------------------------


def link(x, p):
    """∇½‖·‖_p², by its definition."""
    length = np.linalg.norm(x, ord=p)
    return np.zeros_like(x) if length == 0 else np.sign(x) * (np.abs(x) / length) ** (p - 1) * length


def unit(x, p):
    """argmax of s·x over ‖s‖_q ≤ 1."""
    if p == 1 or not x.any():
        return np.sign(x)
    if p == np.inf:
        s = np.zeros_like(x)
        s[np.abs(x).argmax()] = np.sign(x[np.abs(x).argmax()])
        return s
    return link(x, p) / np.linalg.norm(x, ord=p)


def steepest_descent(A, rounds, p, step):
    """[v_1, v_2, …], with plain or normalized steps."""
    v, iterates = np.zeros(A.shape[1]), []
    for t in range(1, rounds + 1):
        c = A.T @ softmax(-A @ v)
        v = v + (link(c, p) / (p - 1) if step == "plain" else unit(c, p) / np.sqrt(t))
        iterates.append(v)
    return iterates


def nesterov_p(A, rounds, p):
    """Nesterov's method for p-norm margins: [s_1, s_2, …]."""
    eta = 1 / (4 * (p - 1))
    v, s, w, iterates = np.zeros(A.shape[1]), np.zeros(A.shape[1]), np.zeros(A.shape[1]), []
    for t in range(1, rounds + 1):
        v = v + t * A.T @ softmax(-A @ (s + eta * t * w))
        w = link(2 * v / (t * (t + 1)), p)
        s = s + eta * t * w
        iterates.append(s)
    return iterates


def mirror_descent(A, rounds, p, weights, eta):
    """[(w_t, p_t)]."""
    theta, S, iterates = np.zeros(A.shape[1]), 0.0, []
    for t in range(1, rounds + 1):
        v = link(eta * theta, p)
        weighted = softmax(-A @ v)
        iterates.append((v / (eta * S) if S else v, weighted))
        alpha = t if weights == "linear" else 1
        theta, S = theta + alpha * A.T @ weighted, S + alpha
    return iterates


def frank_wolfe(A, rounds):
    """p_t = (1-θ)p_{t-1} + θe_i, θ = 2/(t+1): [p_1, p_2, …]."""
    p, iterates = np.zeros(len(A)), []
    for t in range(1, rounds + 1):
        i = (A @ (A.T @ p)).argmin()
        p = (1 - 2 / (t + 1)) * p
        p[i] += 2 / (t + 1)
        iterates.append(p)
    return iterates


def nearest_on_simplex(y):
    """By sorting."""
    u = np.sort(y)[::-1]
    c = np.cumsum(u) - 1
    k = np.nonzero(u > c / np.arange(1, len(y) + 1))[0][-1]
    return np.maximum(y - c[k] / (k + 1), 0)


def pdhg(A, rounds, omega):
    """[(w_t, p_t)] of Chambolle and Pock."""
    L = np.linalg.norm(A, 2)
    w, p, iterates = np.zeros(A.shape[1]), np.full(len(A), 1 / len(A)), []
    for _ in range(rounds):
        new = w + A.T @ p / (omega * L)
        new = new / max(1.0, np.linalg.norm(new))
        p = nearest_on_simplex(p - omega / L * (A @ (2 * new - w)))
        w = new
        iterates.append((w, p))
    return iterates


def box(A, rounds, widened=1.0):
    """The game on the box ‖w‖_∞ ≤ 1, rows of 1-norm at most 1, η_w times `widened`: [(w_t, p_t)]."""
    n, d = A.shape
    eta = widened * np.sqrt(d / (2 * np.log(n)))
    c_sum, s_sum, last, iterates = np.zeros(d), np.zeros(n), A.T @ np.full(n, 1 / n), []
    for _ in range(rounds):
        w = np.clip(eta * (c_sum + last), -1, 1)
        s_sum = s_sum + A @ w
        p = softmax(-s_sum / eta)
        last = A.T @ p
        c_sum = c_sum + last
        iterates.append((w, p))
    return iterates
