"""XACML 3.0 without storage and HTTP: reads policies and requests, and decides a request."""

from secadmin.xacml.combining import Decision
from secadmin.xacml.policies import Assignment, Duty, Policy, Result, decide
from secadmin.xacml.reader import read_policy
from secadmin.xacml.request import Request, request_of_json, request_of_xml

__all__ = [
    "Assignment",
    "Decision",
    "Duty",
    "Policy",
    "Request",
    "Result",
    "decide",
    "read_policy",
    "request_of_json",
    "request_of_xml",
]
