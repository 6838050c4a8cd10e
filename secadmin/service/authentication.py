"""Who asks: the bearer token of a request, turned into a caller."""

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
    """Whether the token is that of a session. Raises Unavailable without the database."""
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
    # Connections that have shown a valid token are the last to go where there are too many.
    request.scope.setdefault("state", {})[KNOWN] = True
    return Caller(token, login.user.name)


def _caller(request: Request, platform: OnPlatform, credentials: Bearer) -> Caller:
    return _named(request, _authenticate(request, platform, credentials, allow_one_time=False))


def _new_caller(request: Request, platform: OnPlatform, credentials: Bearer) -> Caller:
    return _named(request, _authenticate(request, platform, credentials, allow_one_time=True))


def _named(request: Request, caller: Caller) -> Caller:
    """The caller, whose name the line about the request has."""
    request.state.user = caller.user_name
    return caller


Authenticated = Annotated[Caller, Depends(_caller)]
# Only what somebody with a one-time password needs in order to change it.
AuthenticatedAtAll = Annotated[Caller, Depends(_new_caller)]
