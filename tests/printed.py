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
