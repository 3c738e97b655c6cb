"""The request of a search: body of the REST call, stored JSON, argument of the search, file beside the export.

Frozen and closed: an unknown field or a value out of range is refused where it enters. Fields are plain numbers;
what Optuna may vary stands apart in `ranges`, and `resolve` returns the same class with `ranges` empty.
"""

from nas.config.base import one_line as one_line
from nas.config.budget import Bound as Bound
from nas.config.budget import Budget as Budget
from nas.config.budget import LatencyBudget as LatencyBudget
from nas.config.method import Method as Method
from nas.config.request import Range as Range
from nas.config.request import Resources as Resources
from nas.config.request import Retrain as Retrain
from nas.config.request import SearchRequest as SearchRequest
from nas.config.request import Trials as Trials
from nas.config.request import read_request as read_request
from nas.config.space import MAX_PARAMETERS as MAX_PARAMETERS
from nas.config.space import Candidate as Candidate
from nas.config.space import SearchSpace as SearchSpace
from nas.config.space import SlotChoice as SlotChoice
from nas.config.task import DataSizes as DataSizes
from nas.config.task import ServeMode as ServeMode
from nas.config.task import Task as Task
from nas.config.task import Tokenizer as Tokenizer
