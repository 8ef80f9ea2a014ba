"""Where the content of a table is: at the driver, on the nodes, or both."""

import weakref
from collections.abc import Collection
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from strads.checkpoints import Load, Save, SnapshotSave, Tree, digest, is_shared, observe, row_sum, total_row_sum
from strads.cluster import Cluster
from strads.dds._layout import Bounds, Layout, numbers
from strads.dds._memory import copied
from strads.dds._node_tables import copy_table, move_rows, save_rows, store_values, sum_rows
from strads.dds._spread import Spread, lost
from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.errors import CheckpointError, NodeFailure


class Content:
    """The rows of a table, wherever they are, their shape and dtype (`layout`), and their `version`."""

    def __init__(self, layout: Layout, home: Storage | None, spread: Spread | None = None):
        self.layout = layout
        self.version = 0
        self._wholly_written = 0  # version at the last write that may have changed any column
        self._columns_written: dict[str | int, int] = {}  # column → version at the last write that left others alone
        self._home = home
        self._spread = spread
        self._lost: NodeFailure | None = None
        if spread is not None:
            _bring_home_at_end(spread.cluster, self)

    @classmethod
    def at_home(cls, storage: Storage) -> "Content":
        """Content at the driver."""
        return cls(Layout.of(storage), storage)

    @classmethod
    def on_nodes(cls, cluster: Cluster, name: str, layout: Layout, bounds: Bounds) -> "Content":
        """Content in shards that node programs have stored under a name."""
        return cls(layout, None, Spread(cluster, name, layout, bounds))

    @property
    def home(self) -> Storage:
        """The content at the driver; gathered first if it is only on the nodes."""
        observe(self)
        if self._home is None:
            self._home = self.nodes.gather()
        return self._home

    @property
    def is_home(self) -> bool:
        """Whether the driver has the content; asked before an access, which it prepares."""
        observe(self)
        return self._home is not None

    @property
    def spread(self) -> Spread | None:
        """The content on the nodes, or None."""
        return self._spread

    @property
    def nodes(self) -> Spread:
        """Return the content on the nodes, where it must be.

        Raises
        ------
        NodeFailure
            If it was lost with the nodes.
        """
        observe(self)
        if self._spread is None:
            assert self._lost is not None
            raise lost(self._lost) from self._lost
        return self._spread

    def version_beside(self, columns: Collection[str | int]) -> int:
        """Return the version of the content apart from some columns: it increases with each write to another one."""
        others = (version for column, version in self._columns_written.items() if column not in columns)
        return max([self._wholly_written, *others])

    def _written(self, columns: Collection[str | int] | None) -> None:
        self.version += 1
        if columns is None:
            self._wholly_written = self.version
        else:
            self._columns_written.update(dict.fromkeys(columns, self.version))

    def written_at_home(self, columns: Collection[str | int] | None = None) -> None:
        """Record that the driver has changed its copy, perhaps only some columns: the nodes' copy is stale."""
        self._written(columns)
        if self._home is not None and self._spread is not None:
            self._spread.discard()
            self._spread = None

    def written_on_nodes(self, columns: Collection[str | int] | None = None) -> None:
        """Record that the nodes have changed their rows, perhaps only some columns: the driver's copy is stale."""
        self._written(columns)
        if self._spread is not None:
            self._home = None

    def distribute(self, cluster: Cluster, bounds: ArrayLike | None) -> str:
        """See `dvector.distribute`."""
        observe(self)
        wanted = None if bounds is None else self.layout.check_bounds(bounds, cluster.size)
        if self._spread is not None and self._spread.cluster is not cluster:
            self.come_home()
        if self._spread is None:
            self._scatter(cluster, self.layout.equal_bounds(cluster.size) if wanted is None else wanted)
        elif wanted is not None and not np.array_equal(wanted, self._spread.bounds):
            self._spread.run(move_rows, wanted)
            self._spread.bounds = wanted
        return self.nodes.name

    def _scatter(self, cluster: Cluster, bounds: Bounds) -> None:
        home = self.home
        name = cluster.new_name()
        each = [(numbers(home[a:b]),) for a, b in pairwise(bounds)]
        cluster.run(store_values, name, self.layout, bounds, each=each)
        self._spread = Spread(cluster, name, self.layout, bounds)
        _bring_home_at_end(cluster, self)

    def come_home(self) -> None:
        """Gather the content at the driver and drop it on the nodes."""
        spread = self.nodes
        _ = self.home
        self._spread = None
        spread.discard()

    def rescue(self, cluster: Cluster | None) -> None:
        """Gather the content at the driver before this cluster's nodes end; if that fails, it is lost."""
        spread = self._spread
        if spread is None or spread.cluster is not cluster:
            return
        try:  # not by `home`: only for an access by the program itself are lost nodes replaced
            self._home = spread.gather() if self._home is None else self._home
        except Exception as error:
            self._lost = error if isinstance(error, NodeFailure) else NodeFailure(f"{type(error).__name__}: {error}")
        self._spread = None

    def copy(self) -> "Content":
        """Return an independent copy: at the driver if the content is there, otherwise on the nodes."""
        if self.is_home:
            assert self._home is not None
            home = self._home
            values = copied(numbers(home))
            return Content.at_home(values if self.layout.offsets is None else RaggedArray(values, self.layout.offsets))
        name = self.nodes.cluster.new_name()
        self.nodes.run(copy_table, name)
        return Content.on_nodes(self.nodes.cluster, name, self.layout, self.nodes.bounds)

    @property
    def is_on_nodes(self) -> bool:
        """Whether only the nodes have the content."""
        return self._home is None

    def fixed_content(self) -> str | None:
        """Return a checksum of the content, wherever it is; None if it is lost."""
        if self._home is not None:
            sums = [row_sum(numbers(self._home), 0)]
        elif self._spread is not None:
            bounds, offsets = self._spread.bounds[:-1], self.layout.offsets
            first = bounds if offsets is None else offsets[bounds]
            sums = self._spread.run(sum_rows, each=[(int(number),) for number in first])
        else:
            return None
        return digest(total_row_sum(sums), self.layout.offsets)

    def is_shared(self) -> bool:
        """Whether other code may have a view of the content at the driver."""
        return self._home is not None and is_shared(numbers(self._home))

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the content as a tree; each node saves its own rows."""
        if self._home is not None or not isinstance(save, SnapshotSave):
            return {"rows": save.apart(numbers(self.home))}
        nodes = self.nodes
        return {"nodes": nodes.run(save_rows, save.ticket(nodes.cluster.size)), "bounds": nodes.bounds.tolist()}

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore the content at the driver; nodes get it when they need it.

        Raises
        ------
        CheckpointError
            If the table has another shape or dtype.
        """
        home = self._home
        if home is None or not numbers(home).flags.writeable:
            home = self.layout.empty()
        target = numbers(home)
        if "rows" in tree:
            pieces = [(target, tree["rows"])]
        else:
            bounds = tree["bounds"]
            pieces = [
                (numbers(home[low:high]), each)
                for (low, high), each in zip(pairwise(bounds), tree["nodes"], strict=True)
            ]
        for rows, each in pieces:
            found = load.apart(each, rows)
            if found is not rows:
                if found.shape != rows.shape or found.dtype != rows.dtype:
                    raise CheckpointError(
                        f"a table of shape {rows.shape} and dtype {rows.dtype} has shape {found.shape} and dtype "
                        f"{found.dtype} in the checkpoint: the program has changed"
                    )
                rows[...] = found
        self._home, self._lost = home, None
        self.written_at_home()

    def __getstate__(self) -> tuple[Storage, int]:
        return self.home, self.version

    def __setstate__(self, state: tuple[Storage, int]) -> None:
        self.__init__(Layout.of(state[0]), state[0])  # type: ignore[misc]
        self.version = self._wholly_written = state[1]


_TABLES: "weakref.WeakKeyDictionary[Cluster, weakref.WeakSet[Content]]" = weakref.WeakKeyDictionary()


def _bring_home_at_end(cluster: Cluster, content: Content) -> None:
    """Register content to be gathered at the driver before the cluster ends."""
    tables = _TABLES.get(cluster)
    if tables is None:
        tables = _TABLES[cluster] = weakref.WeakSet()
        cluster.before_close.append(partial(_rescue_all, tables, weakref.ref(cluster)))
    tables.add(content)


def _rescue_all(tables: "weakref.WeakSet[Content]", cluster: "weakref.ref[Cluster]") -> None:
    for content in list(tables):
        content.rescue(cluster())
    tables.clear()
