"""The verbs of a search: measure, search, derive, retrain, compare, export. Each takes what the one before returned.

Each may be run again after a restart: finished trials are taken from the store, so only what was lost is redone.
"""

from workers.stages.compare import compare as compare
from workers.stages.compare import compare_layouts as compare_layouts
from workers.stages.compare import describe_layouts as describe_layouts
from workers.stages.derive import derive_all as derive_all
from workers.stages.estimate import measured as measured
from workers.stages.export import export as export
from workers.stages.lengths import at_lengths as at_lengths
from workers.stages.measure import measure as measure
from workers.stages.passed_on import Comparison as Comparison
from workers.stages.passed_on import Derived as Derived
from workers.stages.passed_on import Inputs as Inputs
from workers.stages.passed_on import Retrained as Retrained
from workers.stages.passed_on import Searched as Searched
from workers.stages.passed_on import Trained as Trained
from workers.stages.retrain import retrain as retrain
from workers.stages.rules import confirm_statements as confirm_statements
from workers.stages.rules import infer_rule as infer_rule
from workers.stages.rules import infer_statements as infer_statements
from workers.stages.search import search as search
from workers.stages.winner import describe_samples as describe_samples
