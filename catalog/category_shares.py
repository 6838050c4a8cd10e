"""The shares that users have of the categories: one is never free again, and there are not endless.

All categories of an object belong to the share of its owner: the bits of a stream, those of its
role clauses, and those of a conflict class. Those of removed objects count, too. Who holds CHANGE
SYSTEM has no share: only what there is bounds it.
"""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.authorizer import Authorizer
from catalog.categories import registered_categories
from catalog.errors import Conflict
from catalog.label import MAX_CATEGORIES
from catalog.models import CategoryRow, Object, User
from catalog.permission import Permission
from catalog.subject import subject_of_user

CATEGORIES_OF_USER = 4_096
"""How many categories the objects of one user ever take."""
KEPT_CATEGORIES = 4_096
"""The last categories, which only objects of holders of CHANGE SYSTEM get."""


def has_share(session: Session, user_id: int) -> bool:
    """Whether a user is bounded by its share: it holds CHANGE SYSTEM by none of its roles."""
    authorizer = Authorizer(session)
    subject = subject_of_user(session, session.get_one(User, user_id))
    return not authorizer.decide(subject, Permission.CHANGE_SYSTEM, authorizer.system()).allowed


def require_share(session: Session, user_id: int, wanted: int) -> None:
    """Raise Conflict if the objects of the user may not take so many categories more."""
    taken = _taken_by(session, user_id)
    if taken + wanted > CATEGORIES_OF_USER:
        raise Conflict(
            f"the streams and conflict classes of a user take up to {CATEGORIES_OF_USER} "
            f"categories, and those of removed ones are never free again: {taken} are taken, this "
            f"needs {wanted} more, and {max(0, CATEGORIES_OF_USER - taken)} would fit; let "
            "somebody who holds CHANGE SYSTEM add it"
        )
    if registered_categories(session) + wanted > MAX_CATEGORIES - KEPT_CATEGORIES:
        raise Conflict(
            f"the last {KEPT_CATEGORIES} of {MAX_CATEGORIES} categories are kept for what holders "
            "of CHANGE SYSTEM add; let one of them add it"
        )


def _taken_by(session: Session, user_id: int) -> int:
    own = (
        select(func.count())
        .select_from(CategoryRow)
        .join(Object, Object.id == CategoryRow.stream_id)
        .where(Object.owner_id == user_id)
    )
    return session.scalar(own) or 0
