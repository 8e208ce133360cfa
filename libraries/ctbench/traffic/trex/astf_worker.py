"""The commands of client_worker.py for ASTF: builds what astf_spec.py describes, starts it and changes its rate.

Runs in the process of client_worker.py, which loads it by its path: standard library and `trex` only.
"""

from typing import Any

Arguments = dict[str, Any]


def astf_load(session: Any, spec: Arguments) -> None:
    """Give TRex the profile that `astf_spec.py` described; traffic must not be running."""
    session.require().load_profile(_profile(session.load("astf"), spec))


def astf_start(session: Any, mult: float, duration_s: float) -> None:
    """Start the loaded profile at `mult` times its rate; no new connections after `duration_s`."""
    session.require().start(mult=mult, duration=duration_s, nc=False)


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
                    program=client, ip_gen=ip_gen, port=template["port"], cps=template["cps"], cont=True
                ),
                server_template=api.ASTFTCPServerTemplate(
                    program=server, assoc=api.ASTFAssociationRule(port=template["port"])
                ),
            )
        )
    info = api.ASTFGlobalInfo()
    if spec["ramp_up_s"]:
        info.scheduler.rampup_sec = spec["ramp_up_s"]
    return api.ASTFProfile(default_ip_gen=ip_gen, default_c_glob_info=info, templates=templates)


def _program(api: Any, stream: bool, commands: list[list[Any]]) -> Any:
    program = api.ASTFProgram(stream=stream)
    for name, *arguments in commands:
        if name in ("send", "send_msg"):
            size, letter = arguments
            getattr(program, name)(letter.encode() * size)
        else:
            getattr(program, name)(*arguments)
    return program
