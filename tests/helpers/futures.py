"""A future that is done: what stands in for those of Ray and Dask."""

from __future__ import annotations


class FakeFuture:
    def __init__(self, call, arguments):
        self.call, self.arguments = call, arguments

    def exception(self):
        return None

    def result(self):
        return self.call(*self.arguments)
