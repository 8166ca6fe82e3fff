"""The policies of deploy/meter on a real API server: which pods get a latency meter, and who is told why not.

That the sidecar runs is shown on real nodes (`tests/e2e/test_kubelets_meter.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from berth.api.labels import ANNOTATION_METER_PORT, LABEL_METER, LABEL_OS, METER_DISABLED, METER_ENABLED
from berth.api.meter_injection import CONTAINER
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api

ON = {LABEL_METER: METER_ENABLED}
ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}


LIMITED: dict[str, dict[str, Any]] = {
    "small": {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"memory": "128Mi"}}]}},
    "large": {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "min": {"cpu": "50m"}}]}},
    "even": {
        "kind": "LimitRange",
        "spec": {"limits": [{"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}]},
    },
    "together": {"kind": "LimitRange", "spec": {"limits": [{"type": "Pod", "max": {"memory": "300Mi"}}]}},
    "counted": {"kind": "ResourceQuota", "spec": {"hard": {"limits.cpu": "10"}}},
    "full": {"kind": "ResourceQuota", "spec": {"hard": {"requests.memory": "128Mi"}}},
}
"""Namespaces, and what in each is against the meter's container."""


class Written(NamedTuple):
    """What came of a request."""

    status: int
    warning: str
    answer: dict[str, Any]


def container(name: str = "web", *ports: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "web", "ports": [{"containerPort": port} for port in ports], **fields}


def pod(
    *containers: dict[str, Any],
    labels: dict[str, str] = ON,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": {"generateName": "web-", "labels": {"app": "web", **labels}, "annotations": annotations or {}},
        "spec": {"containers": list(containers or [container("web", 8080)]), **spec},
    }


def stated(port: str) -> dict[str, Any]:
    return pod(annotations={ANNOTATION_METER_PORT: port})


def write(api: Api, path: str, body: dict[str, Any], method: str = "POST") -> Written:
    status, headers, content = api.raw(method, path, body)
    # The header quotes the text.
    return Written(status, headers.get("warning", "").replace("\\", ""), json.loads(content))


def create(api: Api, body: dict[str, Any], namespace: str = "default") -> Written:
    return write(api, f"/api/v1/namespaces/{namespace}/pods", body)


def meters(made: dict[str, Any]) -> list[dict[str, Any]]:
    spec = made["spec"]
    return [each for each in spec.get("initContainers", []) + spec["containers"] if each["name"] == CONTAINER]


def arguments(made: dict[str, Any]) -> list[str]:
    [meter] = meters(made)
    found: list[str] = meter["args"]
    return found


@pytest.fixture(scope="module")
def api(module_cluster: Callable[..., LocalCluster]) -> Iterator[Api]:
    """An API server with the policies in force."""
    cluster = module_cluster(kwok=False)
    cluster.kubectl("apply", "-f", str(REPOSITORY / "deploy" / "rbac" / "00-namespace.yaml"))
    cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "meter"))
    api = cluster.api()
    for name, labels in {
        "strict": {"pod-security.kubernetes.io/enforce": "restricted"},
        "left-alone": {LABEL_METER: METER_DISABLED},
        **{name: {} for name in (*LIMITED, "given")},
    }.items():
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    for name in ("default", "strict", "left-alone", "kube-system", "given", *LIMITED):
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(partial(api.healthy, account), what=f"the account of {name}")

    def in_force() -> bool:
        dry = "/api/v1/namespaces/default/pods?dryRun=All"
        return bool(meters(write(api, dry, pod()).answer)) and bool(write(api, dry, stated("x")).warning)

    eventually(in_force, what="the policies in force")
    yield api
    api.close()


def test_a_pod_with_the_label_gets_a_sidecar(api: Api) -> None:
    status, warning, made = create(api, pod())
    assert (status, warning) == (201, "")
    [meter] = made["spec"]["initContainers"]
    assert meter["name"] == CONTAINER
    assert meter["restartPolicy"] == "Always"
    assert meter["image"] == "berth:0.1.0"
    assert meter["args"][:2] == ["run", "meter"]
    assert meter["args"][-2:] == ["--meter-application=127.0.0.1:8080", "--meter-controller-namespace=berth-system"]
    assert {port["name"]: port["containerPort"] for port in meter["ports"]} == {"metered": 9480, "meter-health": 9481}
    # It reads the controller's ConfigMap with the pod's account, and shows the controller a token of its own.
    assert {mount["mountPath"] for mount in meter["volumeMounts"]} == {"/var/run/secrets/berth.dev", ACCOUNT_TOKEN}
    [token] = [volume for volume in made["spec"]["volumes"] if volume["name"] == "berth-meter-token"]
    [source] = token["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "latency.berth.dev"
    assert [each["name"] for each in made["spec"]["containers"]] == ["web"]


GIVEN = [
    pytest.param(pod(container("web", 80), container("log")), "80", id="the-only-port"),
    pytest.param(
        pod(container("web", 80, 81), annotations={ANNOTATION_METER_PORT: "81"}), "81", id="one-of-two-by-annotation"
    ),
    pytest.param(pod(container("web"), annotations={ANNOTATION_METER_PORT: "65535"}), "65535", id="none-declared"),
    pytest.param(
        pod(container("web", 80), container("dns", ports=[{"containerPort": 53, "protocol": "UDP"}])), "80", id="udp"
    ),
    pytest.param(
        pod(container("web", 80), container("voice", ports=[{"containerPort": 9480, "protocol": "UDP"}])),
        "80",
        id="the-meters-port-by-udp",
    ),
    pytest.param(pod(initContainers=[container("first"), container("proxy", 15001)]), "8080", id="others-start-first"),
    pytest.param(pod(volumes=[{"name": "data", "emptyDir": {}}]), "8080", id="volumes"),
    pytest.param(pod(automountServiceAccountToken=False), "8080", id="no-token-of-the-account"),
    pytest.param(pod(hostNetwork=True), "8080", id="in-the-nodes-network"),
    pytest.param(pod(nodeSelector={LABEL_OS: "linux"}), "8080", id="linux-by-nodes"),
    pytest.param(
        pod(resources={"requests": {"cpu": "10m"}, "limits": {"cpu": "10m"}}), "8080", id="resources-of-the-pod"
    ),
]


@pytest.mark.parametrize(("body", "port"), GIVEN)
def test_what_else_is_in_the_pod_stays(api: Api, body: dict[str, Any], port: str) -> None:
    without = create(api, {**body, "metadata": {"generateName": "plain-"}}).answer["spec"]
    status, warning, made = create(api, body)
    assert (status, warning) == (201, ""), made
    assert f"--meter-application=127.0.0.1:{port}" in arguments(made)
    assert made["spec"]["containers"] == [
        {**each, "volumeMounts": own["volumeMounts"]} if "volumeMounts" in own else each
        for each, own in zip(without["containers"], made["spec"]["containers"], strict=True)
    ]
    names = [each["name"] for each in made["spec"]["initContainers"]]
    assert names == [*(each["name"] for each in without.get("initContainers", [])), CONTAINER]
    volumes = {volume["name"] for volume in body["spec"].get("volumes", [])}
    assert volumes <= {volume["name"] for volume in made["spec"]["volumes"]}


UNTOUCHED = [
    pytest.param(pod(labels={}), "default", id="no-label"),
    pytest.param(pod(labels={LABEL_METER: METER_DISABLED}), "default", id="switched-off"),
    pytest.param(pod(), "left-alone", id="switched-off-in-the-namespace"),
    pytest.param(pod(), "kube-system", id="kube-system"),
    pytest.param(pod(container("web", 80), container(CONTAINER)), "default", id="has-one"),
    pytest.param(
        pod(initContainers=[container("meter", ports=[{"name": "metered", "containerPort": 9480}])]),
        "default",
        id="has-one-by-hand",
    ),
    pytest.param(
        pod(annotations={"kubernetes.io/config.mirror": "abc"}, nodeName="n1"), "default", id="copy-of-a-static-pod"
    ),
]


@pytest.mark.parametrize(("body", "namespace"), UNTOUCHED)
def test_other_pods_stay_as_they_are(api: Api, body: dict[str, Any], namespace: str) -> None:
    status, warning, made = create(api, body, namespace)
    assert (status, warning) == (201, ""), made
    own = body["spec"]["containers"] + body["spec"].get("initContainers", [])
    there = made["spec"]["containers"] + made["spec"].get("initContainers", [])
    assert [each["name"] for each in there] == [each["name"] for each in own]
    assert "berth-meter-token" not in json.dumps(made["spec"])


def test_a_pod_that_is_made_of_one_with_a_meter_has_one(api: Api) -> None:
    first = create(api, pod()).answer
    again = {"metadata": {"generateName": "copy-", "labels": first["metadata"]["labels"]}, "spec": first["spec"]}
    status, _, made = create(api, again)
    assert status == 201
    assert len(meters(made)) == 1
    assert arguments(made) == arguments(first)


def test_the_strictest_pod_security_admits_it(api: Api) -> None:
    status, _, made = create(api, pod(container("web", 8080, securityContext=RESTRICTED)), "strict")
    assert status == 201, made
    assert len(meters(made)) == 1


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        pytest.param("small", "maximum memory usage per Container is 128Mi, but limit is 256Mi", id="more-than-may-be"),
        pytest.param("large", "minimum cpu usage per Container is 50m, but request is 20m", id="less-than-has-to-be"),
        pytest.param("even", "ratio per Container is 2, but provided ratio is 3.2", id="too-much-above-its-request"),
        pytest.param("together", "maximum memory usage per Pod is 300Mi, but limit is 320Mi", id="with-the-others"),
        pytest.param("full", "requested: requests.memory=144Mi", id="no-room"),
        pytest.param("counted", "must specify limits.cpu for: berth-meter", id="without-a-limit-that-is-counted"),
    ],
)
def test_what_a_namespace_asks_of_containers_is_asked_of_the_meter(api: Api, namespace: str, words: str) -> None:
    """No policy can look at such objects: the pod is refused, and who created it is told."""
    limit = LIMITED[namespace]
    path = f"/api/v1/namespaces/{namespace}/{limit['kind'].lower()}s"
    api.request("POST", path, {"metadata": {"name": "limit"}, "spec": limit["spec"]})
    limits = {"cpu": "100m", "memory": "64Mi"}
    body = pod(container("web", 8080, resources={"limits": limits}))
    told = eventually(
        lambda: write(api, f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body),
        accept=lambda found: found.status == 403,
        what="the limit in force",
    )
    assert words in told.answer["message"]
    # A pod is refused as well until Kubernetes' own controller has counted what a new quota limits.
    plain = {**body, "metadata": {"generateName": "plain-"}}
    eventually(lambda: create(api, plain, namespace).status, accept=lambda found: found == 201, what="one without")


def test_what_a_namespace_gives_containers_the_meter_has_too(api: Api) -> None:
    limits = {"limits": [{"type": "Container", "default": {"cpu": "150m"}}]}
    path = "/api/v1/namespaces/given"
    api.request("POST", f"{path}/limitranges", {"metadata": {"name": "given"}, "spec": limits})
    made = eventually(
        lambda: write(api, f"{path}/pods?dryRun=All", pod()).answer,
        accept=lambda found: "limits" in found["spec"]["containers"][0].get("resources", {}),
        what="the default in force",
    )
    assert meters(made)[0]["resources"]["limits"] == {"cpu": "150m", "memory": "256Mi"}


TOLD = [
    *(
        pytest.param(stated(port), ["is no port", "write a number from 1 to 65535"], id=f"port-{port!r}")
        for port in ("web", "0", "65536", "-1", "8080 ", "1e3", "99999999999999999999")
    ),
    pytest.param(pod(container("web")), [f"{ANNOTATION_METER_PORT}] is missing", "exactly one TCP port"], id="no-port"),
    pytest.param(pod(container("web", 80, 443)), ["exactly one TCP port"], id="two-ports"),
    pytest.param(pod(container("web", 80), container("log", 81)), ["exactly one TCP port"], id="ports-of-two"),
    pytest.param(stated("9480"), ["port 9480 is one of the meter"], id="the-meters-port"),
    pytest.param(
        pod(container("web", 80, 9481), annotations={ANNOTATION_METER_PORT: "80"}),
        ["one declares a port of the meter"],
        id="the-meters-port-declared",
    ),
    pytest.param(pod(labels={LABEL_METER: "true"}), ['"true" says nothing', "write enabled or disabled"], id="label"),
    pytest.param(
        pod(volumes=[{"name": "berth-meter-token", "emptyDir": {}}]), ["the name of a volume of the meter"], id="volume"
    ),
    *(
        pytest.param(
            stated(port), [f"{ANNOTATION_METER_PORT}]: its value is no port"], id=f"no-text-for-a-warning-{name}"
        )
        for name, port in {"lines": "8080\n", "long": "8" * 5000, "control": "\x00", "foreign": "\u0668\u0660"}.items()
    ),
    pytest.param(pod(os={"name": "windows"}), ["the meter runs on Linux alone"], id="windows"),
    pytest.param(pod(nodeSelector={LABEL_OS: "windows"}), ["the meter runs on Linux alone"], id="windows-by-nodes"),
    pytest.param(
        pod(container("web", 80, securityContext={"windowsOptions": {"hostProcess": True}}), hostNetwork=True),
        ["the meter runs on Linux alone"],
        id="windows-by-a-container",  # beside which the API server admits none of another kind
    ),
    pytest.param(
        pod(securityContext={"windowsOptions": {"runAsUserName": "shop"}}),
        ["the meter runs on Linux alone"],
        id="windows-by-its-user",
    ),
]


@pytest.mark.parametrize(("body", "words"), TOLD)
def test_a_pod_that_gets_none_is_created_and_says_why(api: Api, body: dict[str, Any], words: list[str]) -> None:
    status, warning, made = create(api, body)
    assert status == 201, made
    assert meters(made) == []
    assert [word for word in [*words, "the pod gets no latency meter"] if word not in warning] == [], warning


@pytest.mark.parametrize("kind", ["deployments", "statefulsets", "daemonsets"])
@pytest.mark.parametrize(
    ("template", "words"),
    [
        pytest.param(stated("web"), ["is no port"], id="told"),
        pytest.param(pod(), [], id="all-is-well"),
        pytest.param(pod(container("web"), labels={}), [], id="no-label"),
    ],
)
def test_who_writes_a_workload_is_told(api: Api, kind: str, template: dict[str, Any], words: list[str]) -> None:
    metadata = {key: value for key, value in template["metadata"].items() if key != "generateName"}
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "template": {**template, "metadata": metadata}}
    if kind == "statefulsets":
        spec["serviceName"] = "web"
    body = {"metadata": {"generateName": "web-"}, "spec": spec}
    status, warning, made = write(api, f"/apis/apps/v1/namespaces/default/{kind}?dryRun=All", body)
    assert status == 201, made
    assert [word for word in words if word not in warning] == [], warning
    assert bool(warning) == bool(words), warning
    assert meters(made["spec"]["template"]) == []


def test_without_its_template_pods_are_created_as_they_are(api: Api) -> None:
    path = "/api/v1/namespaces/berth-system/podtemplates"
    template = api.request("GET", f"{path}/{CONTAINER}")
    assert template is not None
    api.request("DELETE", f"{path}/{CONTAINER}")
    try:
        made = eventually(
            lambda: create(api, pod()), accept=lambda found: meters(found.answer) == [], what="the template gone"
        )
        assert made.status == 201
    finally:
        metadata = {"name": CONTAINER, "labels": template["metadata"]["labels"]}
        api.request("POST", path, {"metadata": metadata, "template": template["template"]})
    eventually(lambda: bool(meters(create(api, pod()).answer)), what="the template back")
