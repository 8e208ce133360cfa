"""The commands of client_worker.py for ASTF: builds what astf_spec.py describes, starts it and changes its rate.

Runs in the process of client_worker.py, which loads it by its path: standard library and `trex` only.
"""

from typing import Any

Arguments = dict[str, Any]


#: TRex' own name for the profile that nobody gave a name.
UNNAMED = "_"


def astf_load(session: Any, spec: Arguments, profile: str = UNNAMED) -> None:
    """Give TRex the profile that `astf_spec.py` described; its traffic must not be running."""
    session.require().load_profile(_profile(session.load("astf"), spec), pid_input=profile)


def astf_start(session: Any, mult: float, duration_s: float, profile: str = UNNAMED) -> None:
    """Start a loaded profile at `mult` times its rate; no new connections after `duration_s`, where that is not
    negative."""
    session.require().start(mult=mult, duration=duration_s, nc=False, pid_input=profile)


def astf_remove(session: Any, profile: str) -> None:
    """Cut off the connections of a profile, and forget it."""
    session.require().stop(pid_input=profile, is_remove=True)


def astf_update(session: Any, mult: float) -> None:
    """Change the rate at once. Connections that are open go on."""
    session.require().update(mult=mult)


def _profile(api: Any, spec: Arguments) -> Any:
    """An ASTFProfile, as the spec describes it."""
    addresses = spec["addresses"]
    ip_gen = api.ASTFIPGen(
        glob=api.ASTFIPGenGlobal(ip_offset=addresses["offset"]),
        dist_client=api.ASTFIPGenDist(ip_range=addresses["client"], distribution=addresses["distribution"]),
        dist_server=api.ASTFIPGenDist(ip_range=addresses["server"], distribution=addresses["distribution"]),
    )
    templates = []
    for template in spec["templates"]:
        client, server = (_program(api, template["stream"], template[side]) for side in ("client", "server"))
        templates.append(
            api.ASTFTemplate(
                client_template=api.ASTFTCPClientTemplate(
                    program=client, ip_gen=ip_gen, port=template["port"], cps=template["cps"], **_how_many(template)
                ),
                server_template=api.ASTFTCPServerTemplate(
                    program=server, assoc=api.ASTFAssociationRule(port=template["port"])
                ),
            )
        )
    clients, servers = api.ASTFGlobalInfo(), api.ASTFGlobalInfo()
    if spec["ramp_up_s"]:
        clients.scheduler.rampup_sec = spec["ramp_up_s"]
    for name, value in spec.get("tcp", {}).items():
        setattr(clients.tcp, name, value)
        setattr(servers.tcp, name, value)
    infos = {"default_c_glob_info": clients, "default_s_glob_info": servers}
    return api.ASTFProfile(default_ip_gen=ip_gen, templates=templates, **infos)


def _how_many(template: Arguments) -> Arguments:
    """So many connections in all, or one after the other for ever."""
    return {"limit": template["limit"]} if "limit" in template else {"cont": True}


def _program(api: Any, stream: bool, commands: list[list[Any]]) -> Any:
    program = api.ASTFProgram(stream=stream)
    for name, *arguments in commands:
        if name in ("send", "send_msg"):
            size, letter = arguments
            getattr(program, name)(letter.encode() * size)
        else:
            getattr(program, name)(*arguments)
    return program
