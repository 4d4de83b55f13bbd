"""The clock shim: C source and what builds it (``build.ensure``)."""
