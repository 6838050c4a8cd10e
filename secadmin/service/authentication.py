"""Authentication: finds the caller by the bearer token of a request."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from catalog.errors import NotAuthenticated
from catalog.sessions import authenticate
from secadmin.control.platform import Platform
from secadmin.control.work import Caller
from secadmin.service.door import KNOWN

_bearer = HTTPBearer(auto_error=False)


async def platform_of(request: Request) -> Platform:
    """The platform that the app was made with."""
    return cast(Platform, request.app.state.platform)


OnPlatform = Annotated[Platform, Depends(platform_of)]
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def is_valid_token(platform: Platform, token: str) -> bool:
    """Say whether the token belongs to a session. Raises Unavailable without the database."""
    with platform.catalog.read() as session:
        try:
            authenticate(session, token, platform.clock(), allow_one_time=True)
        except NotAuthenticated:
            return False
    return True


def _authenticate(
    request: Request, platform: Platform, credentials: Bearer, allow_one_time: bool
) -> Caller:
    if credentials is None:
        raise NotAuthenticated("log in first: secadmin login USER")
    token = credentials.credentials
    with platform.catalog.read() as session:
        login = authenticate(session, token, platform.clock(), allow_one_time=allow_one_time)
    # If there are too many connections, those that have shown a valid token are closed last.
    request.scope.setdefault("state", {})[KNOWN] = True
    return Caller(token, login.user.name)


def _caller(request: Request, platform: OnPlatform, credentials: Bearer) -> Caller:
    return _named(request, _authenticate(request, platform, credentials, allow_one_time=False))


def _new_caller(request: Request, platform: OnPlatform, credentials: Bearer) -> Caller:
    return _named(request, _authenticate(request, platform, credentials, allow_one_time=True))


def _named(request: Request, caller: Caller) -> Caller:
    """The caller. The request log gets the caller's name."""
    request.state.user = caller.user_name
    return caller


Authenticated = Annotated[Caller, Depends(_caller)]
# Only for the calls that a user needs to change a one-time password.
AuthenticatedAtAll = Annotated[Caller, Depends(_new_caller)]
