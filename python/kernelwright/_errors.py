"""The exceptions of Kernelwright: one type per kind of error, the same whichever way a call takes (the fast
path, torch's dispatcher, ctypes).

All are `Error`, and a RuntimeError, because that is what torch makes of a failing op; each is also the built-in that its kind is usually
caught as. The text is a sentence that names the op, the argument, what was got and what is wanted.
"""


class Error(RuntimeError):
    """Any error that Kernelwright reports."""


class ArgumentError(Error, ValueError):
    """Shape, dtype, device, layout or value of an argument does not fit the op's contract. The caller can mend it; nothing was written."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is no object of the type that the op takes there: a list for a tensor, a text for a number."""


class ContractError(Error, ValueError):
    """A contract or a room is malformed. Its author can mend it."""


class UnsupportedError(Error, NotImplementedError):
    """Nothing is wrong with the call, but this build or this GPU cannot do it."""


class ToolchainError(Error):
    """The CUDA driver or NVRTC is missing or too old, or a kernel does not compile."""


class DriverError(Error):
    """The CUDA driver reported an error: of this call's launch, or one that earlier work left in the context (the text says which)."""


class OutOfMemoryError(Error, MemoryError):
    """There is no memory left, on the host or on the device."""


class InternalError(Error):
    """A fault of Kernelwright's own. Please report it."""


class LoadError(Error, OSError):
    """A library of ops (`kernelwright.load_library`) cannot be loaded, or what it brings is malformed. Nothing was added."""


# By kw_status (kw/core/abi.h).
BY_STATUS = (
    InternalError,
    ContractError,
    ArgumentError,
    UnsupportedError,
    ToolchainError,
    DriverError,
    OutOfMemoryError,
    InternalError,
)
