"""[server.oidc]: who says at another place who somebody is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from laprasdp.config.section import Section
from laprasdp.errors import ConfigError

SECRET = "LAPRAS_OIDC_SECRET"
"""The variable that holds what the provider knows this service by; no file has it."""
_HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Oidc:
    """
    An identity provider that speaks OpenID Connect, and what is believed of it.

    Attributes
    ----------
    issuer : str
        Its address; what it is described by stands below, under ``.well-known``.
    client_id : str
        How it knows this service.
    url : str
        The address of this service, as browsers see it.
    claim : str
        What of a person is their name here; of an address of mail, only one that the provider has verified.
    scope : str
        What is asked for.
    allow : tuple of str
        Names of people who become analysts when they first come; ``"@office.example"`` are all that end so.
        Everybody else has to be made by a curator before.
    cap : float or None
        The ε that such an analyst may have measured; None is the whole budget.
    secret : str
        From the environment; empty for a client that is public.
    """

    issuer: str
    client_id: str
    url: str
    claim: str = "email"
    scope: str = "openid email"
    allow: tuple[str, ...] = ()
    cap: float | None = None
    secret: str = field(default="", repr=False)

    def allows(self, name: str) -> bool:
        """Whether somebody of this name, whom nobody knows here, becomes an analyst."""
        return any(name.endswith(one) if one.startswith("@") else name == one for one in self.allow)


def read_oidc(section: Section, environment: Mapping[str, str] | None = None) -> Oidc | None:
    """
    The provider from its section; None where there is none.

    Raises
    ------
    ConfigError
        A key is unknown or wrong.
    """
    if not section.names:
        return None
    section.only("issuer", "client_id", "url", "claim", "scope", "allow", "cap")
    allow, cap = section.take("allow", list, []), section.take("cap", (int, float), None)
    if not all(isinstance(one, str) and len(one) > 1 for one in allow):
        raise ConfigError(f'{section.where}: allow is a list of names, or of ends such as "@office.example"')
    if cap is not None and not 0 < cap <= 1e6:
        raise ConfigError(f"{section.where}: cap is an ε above 0")
    scope = section.take("scope", str, Oidc.scope)
    if "openid" not in scope.split():
        raise ConfigError(f"{section.where}: scope has to name openid")
    return Oidc(
        _address(section, "issuer"),
        section.take("client_id", str),
        _address(section, "url"),
        section.take("claim", str, Oidc.claim),
        scope,
        tuple(allow),
        None if cap is None else float(cap),
        (os.environ if environment is None else environment).get(SECRET, ""),
    )


def _address(section: Section, key: str) -> str:
    given: str = section.take(key, str)
    parts = urlsplit(given)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _HERE)
    if not safe or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ConfigError(f"{section.where}: {key} is an address that begins with https://")
    return given.rstrip("/") if key == "url" else given
