"""A training run of LDA as the iterations of an estimator."""

from strads.models._iterative import EngineSolver, Epoch
from strads.models.topics.counts import TopicCounts
from strads.models.topics.priors import Priors
from strads.models.topics.training import TopicTraining

_LEARN_EVERY = 10  # iterations


class GibbsSolver(EngineSolver):
    """Draws every token's topic once an epoch; from time to time learns the priors and evaluates the likelihood.

    Parameters
    ----------
    training : TopicTraining
        Closed with the solver.
    learn_priors : {"no", "symmetric", "asymmetric"}
    evaluate_every : int
        Number of epochs between two evaluations; 0: never.
    max_iter : int
        Number of the last epoch, which is evaluated as well.
    """

    checkpointed = ("training",)

    def __init__(self, training: TopicTraining, learn_priors: str, evaluate_every: int, max_iter: int):
        self.training, self._engine = training, training._engine
        self._learn_priors = learn_priors
        self._evaluate_every, self._max_iter = evaluate_every, max_iter

    def run_epoch(self, number: int) -> Epoch:
        """Draw all topics, and every 10 epochs the priors that fit them."""
        nodes = self.training.iterate()
        if self._learn_priors != "no" and number % _LEARN_EVERY == 0:
            self.training.learn_priors(symmetric=self._learn_priors == "symmetric")
        return Epoch(number * self.training.n_tokens, figures={"s_error": self.training.s_error}, nodes=nodes)

    def evaluate(self, number: int) -> dict[str, float]:
        """Return the log-likelihood, and the same per token as the objective."""
        if not self._evaluate_every or (number % self._evaluate_every and number != self._max_iter):
            return {}
        found = self.training.log_likelihood()
        return {"log_likelihood": found, "objective": found / self.training.n_tokens}

    def learnt(self) -> tuple[TopicCounts, Priors]:
        """Return the word-topic counts, copied from the nodes, and the priors."""
        return self.learnt_counts(), self.training.priors

    def learnt_counts(self) -> TopicCounts:
        """Return the word-topic counts, copied from the nodes."""
        return self.training.counts()
