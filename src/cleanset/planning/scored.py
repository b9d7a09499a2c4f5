"""The costs of scoring images, measured in this process on some of them."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from time import monotonic, process_time

from cleanset.images.codec import Source
from cleanset.planning.costs import Costs, measured_costs
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.engine import DevicePipeline, Settings
from cleanset.scoring.logits import ReadOff, top5
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import arithmetic, ignore


def scoring_costs(
    load: Callable[[], LoadedModel],
    read: Source,
    settings: Settings,
    images: Sequence[Sequence[Hashable]],
    *,
    read_off: ReadOff = top5,
    besides: Callable[[Sequence[Hashable]], object] = ignore,
) -> Costs:
    """The costs of scoring images with a model that `load` opens, which is part of the start.

    `images`: of each the names that are scored, such as its changes. `besides`: what else is done with some names.
    """
    batch = -(-settings.batch_size // len(images[0])) if images else 1
    with ExitStack() as stack:
        opened = list[DevicePipeline]()

        def compute(part: Sequence[Sequence[Hashable]]) -> None:
            if not opened:
                model = load()
                stack.enter_context(arithmetic(settings.precision))
                opened.append(stack.enter_context(DevicePipeline(read, model.preprocessing, settings)))
                opened[0].load(model, settings.precision, read_off=read_off)
            names = [name for each in part for name in each]
            opened[0].table(names, ignore)
            besides(names)

        if settings.on_gpus:
            return measured_costs(compute, images, batch=batch, workers=len(settings.devices), clock=monotonic)
        return measured_costs(compute, images, batch=batch, workers=available_cores(), clock=process_time)
