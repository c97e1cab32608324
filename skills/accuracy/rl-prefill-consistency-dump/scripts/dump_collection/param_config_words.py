"""What the configuration layer says: why two configurations differ, and what that changes."""

from typing import Dict, Tuple

PARAM_CONFIG_WORDS: Dict[str, Tuple[str, str]] = {
    # --- causes ---
    "switch_overwritten": (
        "{field} is {train} on train where infer asks for {infer}: a later writer of the same field won",
        "{field} 在 train 侧是 {train}，infer 侧要的是 {infer}：同一字段被后写者覆盖了",
    ),
    "switch_differs": (
        "{field} is {train} on train and {infer} on infer: the two sides build different modules",
        "{field} 在 train 侧是 {train}，infer 侧是 {infer}：两侧构建的模块不同",
    ),
    "value_lost": (
        "{field} is {train} on train, its library's own default, where infer has {infer}: the value was lost on the way",
        "{field} 在 train 侧是 {train}，正是库自己的默认值，infer 侧是 {infer}：值在转换中丢失了",
    ),
    "value_differs": (
        "{field} is {train} on train and {infer} on infer",
        "{field} 在 train 侧是 {train}，infer 侧是 {infer}",
    ),
    "field_on_one_side": (
        "{field} is {value} on {side}; the other side has no field that says it",
        "{field} 在 {side} 侧是 {value}；另一侧没有字段说明它",
    ),
    "field_undeclared": (
        "{field} = {value} was set on {side}, but the installed config class declares no such field: nothing reads it",
        "{side} 侧设置了 {field} = {value}，但已安装的配置类没有声明这个字段：没有代码读它",
    ),
    "sources_contradict": (
        "{side} states one value in several places: {places}",
        "{side} 侧同一个值有几处写法且互相矛盾：{places}",
    ),
    "request_lost": (
        "{field} was requested as {requested}, in force is {effective}",
        "要求 {field} 为 {requested}，生效的是 {effective}",
    ),
    "request_unknown": (
        "{field} was requested as {requested}, but the effective configuration knows no such field; the nearest name is {nearest}",
        "要求 {field} 为 {requested}，但生效的配置里没有这个字段；最接近的名字是 {nearest}",
    ),
    "module_differs": (
        "the built module {module} holds {value} where the other side has {other}: a configuration file does not prove what a module uses",
        "构建出的模块 {module} 用的是 {value}，另一侧是 {other}：配置文件不能证明模块实际用了什么",
    ),
    # --- impacts, by the module that uses the field ---
    "yarn_lost": (
        "slow rotation angles and the factor on cos and sin differ; factor {factor} and original length {length} are never read",
        "低频转角和乘在 cos、sin 上的系数不同；缩放系数 {factor} 与原始长度 {length} 从未被读取",
    ),
    "changes_rotary": (
        "rotated q and k differ, from the second token on and more with the position",
        "旋转后的 q、k 不同，从第二个 token 开始，随位置增大",
    ),
    "changes_attention": ("the output of attention differs", "attention 的输出不同"),
    "changes_window": (
        "tokens beyond the window differ; prompts of at most {window} tokens show nothing",
        "超出窗口的 token 不同；不超过 {window} 个 token 的 prompt 看不出来",
    ),
    "changes_experts": ("the output of the expert layers differs", "专家层的输出不同"),
    "changes_router": ("which experts are chosen, or their weights, differ", "选中的专家或其权重不同"),
    "changes_mlp": ("the output of the MLP differs", "MLP 的输出不同"),
    "changes_norms": ("every norm's output differs, from the first layer on", "每个 norm 的输出都不同，从第一层开始"),
    "changes_embedding": ("the embedding's output differs, and everything after it", "embedding 的输出及其后的一切都不同"),
    "changes_head": ("logits differ; the layers below do not", "logits 不同；其下各层不受影响"),
    "changes_layer": ("the residual stream differs in every layer", "每一层的残差流都不同"),
    "changes_all": ("every module may differ", "所有模块都可能不同"),
    # --- the command's answer ---
    "params_open": (
        "open: nothing that was checked differs ({checked} items)",
        "开：检查过的没有不同（{checked} 项）",
    ),
    "params_shut": (
        "shut: {points} mismatch point(s), {differ} of {checked} items differ",
        "关：{points} 个不一致点，{checked} 项中 {differ} 项不同",
    ),
    "params_cannot": (
        "cannot tell: a layer could not be compared; of what was checked {differ} of {checked} items differ",
        "无法判断：有一层没能比较；检查过的 {checked} 项中 {differ} 项不同",
    ),
    "params_layers": (
        "layers: config {config}, structure {structure}, weights {weights}",
        "三层：config {config}，structure {structure}，weights {weights}",
    ),
    "params_coverage": (
        "fields compared: train {train} of {train_of}, infer {infer} of {infer_of}; the rest is listed under coverage",
        "比较过的字段：train {train_of} 个中 {train} 个，infer {infer_of} 个中 {infer} 个；其余列在 coverage",
    ),
    "params_no_effect": (
        "{n} difference(s) that cannot change a prefill value are listed and do not shut",
        "另有 {n} 个不影响 prefill 数值的不同，只列出、不关门",
    ),
    "params_point": (
        "param {id}: {cause}; {impact}",
        "param {id}：{cause}；{impact}",
    ),
}
