"""CEL of the admission policies that put a latency meter into pods with a label, and warn where they cannot.

`params` is the PodTemplate that has the meter's container and volumes, in the latency controller's namespace. A pod
that one of the rules is against stays as it is: whatever is wrong with the meter, no pod may be refused for it.
"""

from __future__ import annotations

from typing import Final

from berth.api.labels import ANNOTATION_METER_PORT, LABEL_METER, LABEL_OS, METER_DISABLED, METER_ENABLED
from berth.api.rules import Rule

CONTAINER: Final = "berth-meter"
"""Name of the PodTemplate, and of the container in it that is put into pods."""
PORT: Final = "metered"
"""Name of the meter's port for users, the ``targetPort`` of Services; who has a port of that name has a meter."""
POD: Final = "has(object.spec.template) ? object.spec.template : object"
"""CEL: the pod, or the template of a workload's pods."""

_TCP: Final = "p.?protocol.orValue('TCP') == 'TCP'"

VARIABLES: Final[dict[str, str]] = {
    "pod": POD,
    "label": f"variables.pod.metadata.?labels[?'{LABEL_METER}'].orValue('')",
    "inits": "variables.pod.spec.?initContainers.orValue([])",
    "containers": "variables.pod.spec.containers + variables.inits",
    "volumes": "variables.pod.spec.?volumes.orValue([])",
    "metered": (
        f"variables.containers.exists(c, c.name == '{CONTAINER}' || "
        f"c.?ports.orValue([]).exists(p, p.?name.orValue('') == '{PORT}'))"
    ),
    "meter": "params.template.spec.containers[0]",
    "added": "params.template.spec.?volumes.orValue([])",
    "meterPorts": "variables.meter.?ports.orValue([]).map(p, p.containerPort)",
    # Of containers that listen on TCP, the ports.
    "declared": (
        f"variables.pod.spec.containers.map(c, c.?ports.orValue([]).filter(p, {_TCP}).map(p, p.containerPort))"
        ".filter(ports, size(ports) > 0)"
    ),
    "stated": f"variables.pod.metadata.?annotations[?'{ANNOTATION_METER_PORT}'].orValue('')",
    "port": (
        "variables.stated != '' ? variables.stated : "
        "size(variables.declared) == 1 && size(variables.declared[0]) == 1 ? string(variables.declared[0][0]) : ''"
    ),
    # Lines, control characters and lengths that an annotation may have would cost the warning its text, or all of it.
    "shown": """variables.stated.matches('^[[:print:]]{1,64}$') ? '"' + variables.stated + '"' : 'its value'""",
    # Said outright, by the label that nodes have it by, or by what there is on Windows alone.
    "windows": (
        "variables.pod.spec.?os.name.orValue("
        f"variables.pod.spec.?nodeSelector[?'{LABEL_OS}'].orValue('linux')) == 'windows' || "
        "variables.pod.spec.?securityContext.?windowsOptions.hasValue() || "
        "variables.containers.exists(c, c.?securityContext.?windowsOptions.hasValue())"
    ),
    "isPort": "variables.port.matches('^[1-9][0-9]{0,4}$') && int(variables.port) <= 65535",
}
"""Named expressions, each of which may use those before it."""

_NONE: Final = "; the pod gets no latency meter; "
_LABEL: Final = f"metadata.labels[{LABEL_METER}]"
_ANNOTATION: Final = f"metadata.annotations[{ANNOTATION_METER_PORT}]"

RULES: Final = (
    Rule(
        f"variables.label in ['{METER_ENABLED}', '{METER_DISABLED}']",
        f"""'{_LABEL}: "' + variables.label + '" says nothing{_NONE}write {METER_ENABLED} or {METER_DISABLED}'""",
    ),
    Rule(
        "variables.stated == '' || variables.isPort",
        f"'{_ANNOTATION}: ' + variables.shown + ' is no port{_NONE}write a number from 1 to 65535'",
    ),
    Rule(
        "variables.port != ''",
        f"'{_ANNOTATION} is missing, and the containers do not declare exactly one TCP port{_NONE}"
        "write the port that the application listens on'",
    ),
    Rule(
        "!variables.isPort || !(int(variables.port) in variables.meterPorts)",
        f"'{_ANNOTATION}: port ' + variables.port + ' is one of the meter{_NONE}"
        f"have the application listen on another, or change PodTemplate {CONTAINER}'",
    ),
    Rule(
        f"!variables.containers.exists(c, c.?ports.orValue([]).exists(p, {_TCP} && "
        "p.containerPort in variables.meterPorts))",
        f"'spec.containers: one declares a port of the meter{_NONE}"
        f"have it listen on another, or change PodTemplate {CONTAINER}'",
    ),
    Rule(
        "!variables.volumes.exists(v, variables.added.exists(a, a.name == v.name))",
        f"'spec.volumes: one has the name of a volume of the meter{_NONE}rename it'",
    ),
    Rule(
        "!variables.windows",
        f"'spec: the pod is for Windows, and the meter runs on Linux alone{_NONE}"
        f"write label {LABEL_METER}: {METER_DISABLED}'",
    ),
)
"""What keeps a meter out of a pod, said to whoever creates a pod or a workload."""

PATCH: Final = "\n".join(
    (
        "variables.metered || !variables.fits ? [] :",
        "(has(object.spec.initContainers) ? [] : [JSONPatch{op: 'add', path: '/spec/initContainers', value: []}]) +",
        "[",
        "  JSONPatch{op: 'add', path: variables.at, value: variables.meter},",
        "  JSONPatch{op: 'add', path: variables.at + '/restartPolicy', value: 'Always'},",
        "  JSONPatch{op: 'add', path: variables.at + '/args', value: variables.meter.?args.orValue([]) + [",
        "    '--meter-application=127.0.0.1:' + variables.port,",
        "    '--meter-controller-namespace=' + params.metadata.namespace]}",
        "] +",
        # What a pod states for all of its containers together must be no less than what they state.
        "(has(object.spec.resources) ? [JSONPatch{op: 'add', path: variables.at + '/resources', value: {}}] : []) +",
        "[JSONPatch{op: 'add', path: '/spec/volumes', value: variables.volumes + variables.added}]",
    )
)
"""CEL: how a pod becomes one with a meter; last of the containers that start before the application."""
